<?php

declare(strict_types=1);

namespace Stanchion\Internal;

use Stanchion\Client;
use Stanchion\Exception\StanchionException;

/**
 * What older classes are given: a connection of phpredis or Predis. A client is opened to the same server and database,
 * with the same login and prefix; the connection itself is not used. What cannot be known from it is refused.
 *
 * @internal
 */
final class OlderClient
{
    private const PASS = 'pass a URL such as redis://HOST:PORT/DATABASE, or what Stanchion\Client::connect() returns';

    /**
     * @param object|string|null $given also a client or a URL; null is STANCHION_URL
     * @param bool $reads whether it reads what older code has written, and so not what phpredis has encoded
     */
    public static function open(
        #[\SensitiveParameter] object|string|null $given,
        bool $foreignShare = false,
        bool $reads = false,
    ): Client {
        if ($given instanceof Client) {
            return $given;
        }
        [$url, $prefix] = match (true) {
            !is_object($given) => [$given, ''],
            $given instanceof \Redis => self::ofPhpredis($given, $reads),
            $given instanceof \Predis\ClientInterface => self::ofPredis($given),
            default => throw self::refused($given, 'is not a connection to one Redis server'),
        };
        return $prefix === ''
            ? Client::connect($url, foreignShare: $foreignShare)
            : Client::connect($url, "{$prefix}Lock:", "{$prefix}Queue:", foreignShare: $foreignShare);
    }

    /** @return array{string, string} a URL, and what is put before every key */
    private static function ofPhpredis(\Redis $redis, bool $reads): array
    {
        if (!$redis->isConnected()) {
            throw self::refused($redis, 'is not connected, so its server is not known: connect it first');
        }
        $encodes = $redis->getOption(\Redis::OPT_SERIALIZER) || $redis->getOption(\Redis::OPT_COMPRESSION);
        if ($reads && $encodes) {
            throw self::refused($redis, 'serializes or compresses task ids, so ours would not match them');
        }
        $host = (string) $redis->getHost();
        if (preg_match('#^(tls|ssl|rediss)://#', $host)) {
            throw self::refused($redis, 'uses TLS, and its certificates cannot be read from it', 'rediss');
        }
        $auth = array_values(array_filter((array) ($redis->getAuth() ?: []), 'is_string'));
        // Nothing, a password, or a user and a password.
        [$user, $password] = count($auth) === 2 ? $auth : [null, $auth[0] ?? null];
        $host = (string) preg_replace('#^tcp://#', '', $host);
        $url = str_starts_with($host, '/')
            ? self::socket($host, $redis->getDbNum(), $user, $password)
            : self::server($host, $redis->getPort(), $redis->getDbNum(), $user, $password);
        return [$url, (string) $redis->getOption(\Redis::OPT_PREFIX)];
    }

    /** @return array{string, string} as above */
    private static function ofPredis(\Predis\ClientInterface $predis): array
    {
        $connection = $predis->getConnection();
        if (!$connection instanceof \Predis\Connection\NodeConnectionInterface) {
            throw self::refused($predis, 'is connected to more than one server');
        }
        $its = $connection->getParameters();
        [$database, $user, $password] = [(int) $its->database, $its->username, $its->password];
        $url = match ($its->scheme) {
            'tcp', 'redis' => self::server($its->host, (int) $its->port, $database, $user, $password),
            'unix' => self::socket($its->path, $database, $user, $password),
            default => throw self::refused($predis, "has the scheme $its->scheme", 'rediss'),
        };
        return [$url, (string) $predis->getOptions()->prefix];
    }

    private static function server(
        string $host,
        int $port,
        int $database,
        #[\SensitiveParameter] ?string $user,
        #[\SensitiveParameter] ?string $password,
    ): string {
        $login = $password === null ? '' : rawurlencode($user ?? '') . ':' . rawurlencode($password) . '@';
        $host = str_contains($host, ':') && $host[0] !== '[' ? "[$host]" : $host;
        return "redis://$login$host:$port/$database";
    }

    private static function socket(
        string $path,
        int $database,
        #[\SensitiveParameter] ?string $user,
        #[\SensitiveParameter] ?string $password,
    ): string {
        $parameters = array_filter(['user' => $user, 'pass' => $password], is_string(...)) + ['db' => $database];
        $path = implode('/', array_map('rawurlencode', explode('/', $path)));
        return "redis+unix://$path?" . http_build_query($parameters, '', '&', PHP_QUERY_RFC3986);
    }

    private static function refused(object $given, string $why, string $scheme = 'redis'): StanchionException
    {
        $what = str_replace('redis://', "$scheme://", self::PASS);
        return Errors::invalid('this ' . get_debug_type($given) . " $why; $what");
    }
}

<?php

declare(strict_types=1);

namespace Stanchion\Exception;

/** The client, lease, claim or worker was closed, or the request has ended. */
class Closed extends \RuntimeException implements StanchionException
{
    use Facts;
}

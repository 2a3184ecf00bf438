"""The package for Composer: on the command line, under php-fpm, as Apache's module, and where FFI is forbidden."""

import json
import re
import socket

from dist import SAID, bring, example, installed, refused, says, times, with_url

COMPOSER = "COMPOSER_ALLOW_SUPERUSER=1 composer --quiet require stanchion/stanchion"
# What the error has to name.
REMEDIES = ("PHP's FFI is disabled here", "ffi.enable = true", "opcache.preload = ", "/preload.php", "opcache.preload_user",
            "ffi.preload")


def project(root, name, url):
    """A folder with the package, and README's first example: where it is outside, inside, and how long it took."""
    place, inside = root.fresh(name)
    (place / "packages").mkdir()
    bring(place / "packages", "stanchion-php-*.zip")
    (place / "example.php").write_text(
        "<?php require __DIR__ . '/vendor/autoload.php';\n" + with_url(example("bindings-c/php", "php"), url))
    # All that Composer installs is here: nothing is looked up.
    repositories = [{"type": "artifact", "url": "packages"}, {"packagist": False}]
    (place / "composer.json").write_text(json.dumps({"repositories": repositories}))
    return place, inside, installed(root, COMPOSER, inside)


def php(root, url):
    _, inside, took = project(root, "php", url)
    return times(took, says(root, "php example.php", inside))


def settings(place, inside, preload):
    """php.ini, as README has it."""
    text = example("bindings-c/php", "ini") if preload else ""
    text = text.replace("/etc/php/stanchion.h", f"{inside}/stanchion.h").replace("/path/to", inside)
    assert not preload or text.count(inside) == 3, text
    (place / "php.ini").write_text(f"{text}opcache.enable = 1\ndisplay_errors = 1\nhtml_errors = 0\n")
    # Whoever serves has the database there.
    place.chmod(0o777)


def served(root, inside, start, pid, ask, log):
    """What is answered to two requests, one after the other; the server has ended then."""
    script = f"""{start} || {{ cat {log}; exit 1; }}
{ask}; {ask}; asked=$?
kill "$(cat {pid})" && tail --sleep-interval=0.1 --pid="$(cat {pid})" --follow /dev/null
cat {log}; exit $asked"""
    done = root.run(script, inside)
    assert done.returncode == 0, done.stdout
    return done.stdout


def on_fpm(root, place, inside, preload):
    """What php-fpm answers, which is started as root."""
    settings(place, inside, preload)
    (place / "fpm.conf").write_text(f"""[global]
error_log = {inside}/fpm.log
pid = {inside}/fpm.pid
daemonize = yes
[www]
user = www-data
group = www-data
listen = {inside}/fpm.sock
pm = static
pm.max_children = 1
""")
    start = f"$(ls /usr/sbin/php-fpm*) --php-ini {inside}/php.ini --fpm-config {inside}/fpm.conf"
    ask = f"SCRIPT_FILENAME={inside}/example.php REQUEST_METHOD=GET cgi-fcgi -bind -connect {inside}/fpm.sock"
    return served(root, inside, start, "fpm.pid", ask, "fpm.log")


def on_apache(root, place, inside):
    settings(place, inside, preload=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    modules = root.place / "usr/lib/apache2/modules"
    library = next(modules.glob("libphp*.so")).name
    (place / "apache.conf").write_text(f"""ServerName localhost
Listen 127.0.0.1:{port}
User www-data
Group www-data
PidFile {inside}/apache.pid
ErrorLog {inside}/apache.log
DocumentRoot {inside}
PHPINIDir {inside}
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule php_module /usr/lib/apache2/modules/{library}
StartServers 1
<Files "*.php">
SetHandler application/x-httpd-php
</Files>
""")
    get = f"import urllib.request as web; print(web.urlopen('http://127.0.0.1:{port}/example.php', timeout=60).read().decode())"
    return served(root, inside, f"apache2 -f {inside}/apache.conf -k start", "apache.pid", f'python3 -c "{get}"', "apache.log")


def fpm(root, url):
    """As README says: FFI only for what was preloaded."""
    place, inside, took = project(root, "fpm", url)
    installed(root, "vendor/bin/stanchion-ffi > stanchion.h", inside)
    said = on_fpm(root, place, inside, preload=True)
    assert len(set(re.findall(rf"{SAID} \d+", said))) == 2 and said.count("sending to") == 2, said
    return f"installed in {took:.1f} s"


def apache(root, url):
    place, inside, took = project(root, "apache", url)
    installed(root, "vendor/bin/stanchion-ffi > stanchion.h", inside)
    said = on_apache(root, place, inside)
    assert len(set(re.findall(rf"{SAID} \d+", said))) == 2 and said.count("sending to") == 2, said
    return f"installed in {took:.1f} s"


def forbidden(root):
    """Where FFI is not allowed, or not there, the error says what to do."""
    place, inside, _ = project(root, "forbidden", "sqlite:app.db")
    # The command line may use it, unless it is off.
    says(root, "php -d ffi.enable=preload example.php", inside)
    refused(root, "php -d ffi.enable=false -d display_errors=1 example.php", inside, "(ffi.enable = false)", *REMEDIES)
    said = on_fpm(root, place, inside, preload=False)
    missing = [word for word in ("(ffi.enable = preload)", *REMEDIES) if word not in said]
    assert not missing and SAID not in said, f"without {missing}: {said}"
    refused(root, "php --no-php-ini -d display_errors=1 example.php", inside, "extension FFI is missing", "extension=ffi")
    return "the error names the settings"


CASES = {"php": php, "fpm": fpm, "apache": apache}
ONCE = {"forbidden": forbidden}

"""php-fpm behind nginx, on a socket and a port of their own."""

import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

from stores import PACKAGE, on_free_port, run, until

CHILDREN = 4
# As root, servers run as somebody else; otherwise as whoever runs the tests.
ROOT = os.geteuid() == 0
USER = "www-data"


def program():
    found = [name for name in ("php-fpm8.2", "php-fpm", "php-fpm8.3", "php-fpm8.4") if shutil.which(name, path=PATH)]
    if not found:
        raise FileNotFoundError("php-fpm is missing: make deps")
    return found[0]


PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class Site:
    """A folder of PHP files, served."""

    def __init__(self, folder, library, root, url, preload=True, children=CHILDREN, settings=(), variables=None):
        self.folder, self.library, self.root = folder, library, root
        self.preload, self.children, self.settings = preload, children, settings
        self.variables = {"STANCHION_LIB": library, "STANCHION_TEST_URL": url, **(variables or {})}
        folder.mkdir()
        folder.chmod(0o777)
        self.socket = folder / "fpm.sock"

    def __enter__(self):
        self.fpm = subprocess.Popen(
            [program(), "--nodaemonize", "--fpm-config", str(self.write_pool()), *self.php_settings()],
            stdout=subprocess.DEVNULL, stderr=open(self.folder / "fpm.err", "w"), env=self.environment())
        self.nginx = None
        try:
            until(self.fpm_listens, "php-fpm answers")
            # It writes its pid once it has the port.
            self.nginx, self.port = on_free_port(self.start_nginx, (self.folder / "nginx.pid").exists)
        except AssertionError:
            print(self.log())
            self.__exit__()
            raise
        return self

    def fpm_listens(self):
        with socket.socket(socket.AF_UNIX) as caller:
            return self.fpm.poll() is None and caller.connect_ex(str(self.socket)) == 0

    def start_nginx(self, port):
        return subprocess.Popen(
            ["nginx", "-e", str(self.folder / "nginx.err"), "-c", str(self.write_nginx(port))], env=self.environment(),
            stderr=subprocess.DEVNULL)

    def __exit__(self, *_):
        for server in filter(None, (self.nginx, self.fpm)):
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def environment(self):
        return {**os.environ, "PATH": PATH, "STANCHION_LIB": str(self.library)}

    def php_settings(self):
        settings = ["opcache.enable=1", "error_log=" + str(self.folder / "php.err"), *self.settings]
        if self.preload:
            # As the README says: ffi.enable stays at "preload".
            header = self.folder / "stanchion.h"
            header.write_text(run("php", PACKAGE / "bin/stanchion-ffi", env=self.environment(), check=True,
                                  stdout=subprocess.PIPE).stdout)
            settings += [f"ffi.preload={header}", f"opcache.preload={PACKAGE / 'preload.php'}"]
            settings += [f"opcache.preload_user={USER}"] if ROOT else []
        return [word for setting in settings for word in ("-d", setting)]

    def write_pool(self):
        path = self.folder / "fpm.conf"
        variables = "\n".join(f"env[{name}] = {value}" for name, value in self.variables.items())
        owner = f"user = {USER}\ngroup = {USER}\nlisten.owner = {USER}\n" if ROOT else ""
        path.write_text(f"""[global]
error_log = {self.folder}/fpm.log
[www]
{owner}listen = {self.socket}
pm = static
pm.max_children = {self.children}
clear_env = no
catch_workers_output = yes
{variables}
""")
        return path

    def write_nginx(self, port):
        path = self.folder / "nginx.conf"
        owner = f"user {USER};\n" if ROOT else ""
        path.write_text(f"""{owner}daemon off;
worker_processes 1;
pid {self.folder}/nginx.pid;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {self.folder}/body;
    fastcgi_temp_path {self.folder}/fastcgi;
    proxy_temp_path {self.folder}/proxy;
    scgi_temp_path {self.folder}/scgi;
    uwsgi_temp_path {self.folder}/uwsgi;
    server {{
        listen 127.0.0.1:{port} backlog=256;
        location / {{
            fastcgi_pass unix:{self.socket};
            fastcgi_param SCRIPT_FILENAME {self.root}$uri;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_read_timeout 60;
        }}
    }}
}}
""")
        return path

    def address(self, path):
        return f"http://127.0.0.1:{self.port}/{path}"

    def get(self, path):
        """The status and the body."""
        try:
            with urllib.request.urlopen(self.address(path), timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def load(self, path, requests, at_a_time, method="GET"):
        """How many requests of ab went well."""
        done = run("ab", "-q", "-l", "-m", method, "-n", requests, "-c", at_a_time, self.address(path), stdout=subprocess.PIPE, check=True)
        count = {name: int(number) for name, number in re.findall(r"^(.+?) (?:requests|responses):\s+(\d+)", done.stdout, re.M)}
        return count["Complete"] - count["Failed"] - count.get("Non-2xx", 0)

    def pids(self):
        """The children of php-fpm."""
        found = run("pgrep", "-P", self.fpm.pid, stdout=subprocess.PIPE).stdout
        return sorted(int(pid) for pid in found.split())

    def memory(self):
        """Of each child what is resident, in KiB."""
        return {pid: int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read()).group(1)) for pid in self.pids()}

    def log(self):
        return "".join(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in
                       (self.folder / name for name in ("fpm.err", "fpm.log", "php.err", "nginx.err")) if path.exists())

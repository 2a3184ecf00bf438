//! Certificates for a server that speaks TLS, made by openssl.

use std::path::Path;
use std::process::Command;

use super::process::INSTALL;

/// An authority, and a server's and a client's certificate signed by it.
pub(super) fn make(dir: &Path) {
    let days = ["-days", "2", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    let new_key = |name: &str| {
        let mut command = Command::new("openssl");
        command.current_dir(dir).args(["req", "-x509"]).args(days);
        command.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.crt")]);
        command
    };
    run(new_key("ca").args(["-subj", "/CN=Stanchion test CA"]));
    for (name, san) in [("server", "DNS:localhost,IP:127.0.0.1"), ("client", "DNS:client")] {
        run(new_key(name).args(["-subj", &format!("/CN={name}"), "-CA", "ca.crt", "-CAkey", "ca.key"]).args(
            ["-addext", &format!("subjectAltName={san}"), "-addext", "basicConstraints=critical,CA:FALSE"],
        ));
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("openssl: {error}; {INSTALL}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

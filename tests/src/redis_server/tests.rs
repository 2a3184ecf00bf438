use super::*;

fn ping(server: &RedisServer) -> String {
    redis::cmd("PING").query(&mut server.raw()).unwrap()
}

#[test]
fn it_answers_on_port_and_socket_and_goes_away_when_dropped() {
    let server = RedisServer::start();
    assert_eq!(ping(&server), "PONG");
    assert_eq!(server.cli(&["PING"]), "PONG");
    assert!(server.socket().exists());
    let (pid, dir) = (server.pid(), server.dir().to_owned());
    drop(server);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(!dir.exists());
}

#[test]
fn it_survives_the_thread_that_started_it() {
    let server = thread::spawn(RedisServer::start).join().unwrap();
    assert_eq!(ping(&server), "PONG");
}

#[test]
fn it_comes_back_empty_or_with_its_data() {
    for (server, expected) in [(RedisServer::start(), ""), (RedisServer::builder().appendonly().start(), "1")]
    {
        server.cli(&["SET", "a", "1"]);
        let pid = server.pid();
        server.kill9();
        assert!(server.try_raw().is_err());
        server.start_again();
        assert_ne!(server.pid(), pid);
        assert_eq!(server.cli(&["GET", "a"]), expected);
        server.restart();
        assert_eq!(server.cli(&["GET", "a"]), expected);
    }
}

#[test]
fn a_frozen_server_answers_after_it_goes_on() {
    let server = RedisServer::start();
    let raw = server.raw();
    raw.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    server.stop_signal();
    let mut raw = raw;
    assert!(redis::cmd("PING").query::<String>(&mut raw).unwrap_err().is_timeout());
    server.cont_signal();
    assert_eq!(ping(&server), "PONG");
}

#[test]
fn users_have_the_rights_they_were_given() {
    let server = RedisServer::builder().user("app", "on >c4n4ry-pa55w0rd ~a* +get +ping").start();
    let client = redis::Client::open(server.url_as("app", "c4n4ry-pa55w0rd")).unwrap();
    let mut raw = client.get_connection().unwrap();
    assert_eq!(redis::cmd("GET").arg("a").query::<Option<String>>(&mut raw).unwrap(), None);
    let error = redis::cmd("GET").arg("b").query::<Option<String>>(&mut raw).unwrap_err();
    assert_eq!(error.code(), Some("NOPERM"));
}

#[test]
fn the_tls_port_speaks_tls_with_a_certificate_of_the_ca() {
    let server = RedisServer::builder().tls().start();
    let port = server.tls_port().to_string();
    let ca = server.ca_file();
    let answer = Command::new("redis-cli")
        .args(["--tls", "-h", "localhost", "-p", &port, "--cacert"])
        .arg(ca)
        .arg("PING")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "PONG", "{answer:?}");
}

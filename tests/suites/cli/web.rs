//! `stanchion web`, asked as a browser asks it. What only a browser shows is in `tests/browser`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;
use stanchion::blocking::{Begun, Client};
use stanchion::{
    CachedOptions, ClaimOptions, Flow, Limit, LockOptions, QueueConfig, Retry, Schedule, Task, TaskState,
};
use stanchion_tests::RedisServer;
use stanchion_tests::wait::{eventually, eventually_some, holds_within};

use super::harness::{LONG, Place, Running, on_both_stores};

/// A dashboard that runs.
struct Dashboard {
    process: Running,
    address: String,
}

/// What it answered.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Dashboard {
    fn start(place: &Place, more: &[&str]) -> Self {
        let path = place.path("web.err");
        let mut command = place.stanchion(&[&["web", "--listen", "127.0.0.1:0"], more].concat());
        command.stderr(File::create(&path).unwrap());
        let process = Running::start_with_stderr(command);
        let told = || {
            let text = fs::read_to_string(&path).ok()?;
            Some(text.split_once("http://")?.1.split_once('/')?.0.to_owned())
        };
        let address = eventually_some(LONG, told);
        Self { process, address }
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let host = headers.iter().find(|(name, _)| *name == "Host").map_or(&*self.address, |(_, host)| host);
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        for (name, value) in headers.iter().filter(|(name, _)| *name != "Host") {
            request += &format!("{name}: {value}\r\n");
        }
        if method == "POST" {
            request += "Content-Type: application/x-www-form-urlencoded\r\n";
        }
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    /// A page that is there.
    #[track_caller]
    fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    }

    /// Sends what a form on its own pages sends; the page to which that leads.
    #[track_caller]
    fn act(&self, path: &str, form: &str) -> String {
        let answer = self.ask("POST", path, &[("Sec-Fetch-Site", "same-origin")], form);
        assert_eq!(answer.status, 303, "{path}: {answer:?}");
        self.page(answer.head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap())
    }
}

fn stalled(place: &Place) -> Client {
    let client = Client::open(place.url()).unwrap();
    let queue = client.queue("mails");
    let ago = SystemTime::now() - Duration::from_secs(600);
    for id in ["a", "b"] {
        queue.enqueue(Task::new(id).payload("secret").due(ago)).unwrap();
    }
    client
}

/// With a dead task, a schedule and a flow besides.
fn filled(place: &Place) -> Client {
    let client = stalled(place);
    let queue = client.queue("mails");
    queue.enqueue(Task::new("bad").max_attempts(1).priority(9)).unwrap();
    queue.claim(ClaimOptions::new()).unwrap().remove(0).nack(Retry::Backoff, "refused").unwrap();
    queue.schedule(Schedule::new("nightly", "0 3 * * *")).unwrap();
    queue.enqueue_flow(Flow::chain("import", [Task::new("x"), Task::new("y")])).unwrap();
    client
}

on_both_stores! {
    fn the_first_page_says_what_is_wrong_and_why(place) {
        let client = stalled(place);
        let dashboard = Dashboard::start(place, &[]);
        // Between the two stands for how long.
        let says = |text: &str, rest: &str| {
            let said = || dashboard.page("/").split_once(text).is_some_and(|(_, page)| page.contains(rest));
            assert!(holds_within(LONG, said), "it does not say {text:?} {rest:?}: {}", dashboard.page("/"));
        };
        says("2 tasks are due, the first for ", ": no consumer");
        let queue = client.queue("mails");
        queue.pause().unwrap();
        says("2 tasks are due, the first for ", ": paused");
        queue.resume().unwrap();
        queue.configure(QueueConfig::new().max_running(Some(1))).unwrap();
        let claim = queue.claim(ClaimOptions::new()).unwrap().remove(0);
        says("1 task is due, the first for ", ": 1 run, no more may at once");
        claim.bury("no such host").unwrap();
        queue.configure(QueueConfig::new().max_running(None)).unwrap();
        says("1 task has died in the last hour; no such host", "");
        queue.claim(ClaimOptions::new()).unwrap().remove(0).ack().unwrap();
        let keyed = client.queue("keyed");
        for id in ["a", "b"] {
            keyed.enqueue(Task::new(id).key("tenant:1")).unwrap();
        }
        keyed.claim(ClaimOptions::new()).unwrap().remove(0).throttle(Duration::from_secs(900)).unwrap();
        // The other one had come into line meanwhile, and is held when its turn comes.
        assert!(keyed.claim(ClaimOptions::new()).unwrap().is_empty());
        says("1 key waits until ", "");
        for _ in 0..4 {
            keyed.enqueue(Task::new("poison")).unwrap();
            let mut claims = keyed.claim(ClaimOptions::new()).unwrap();
            claims.remove(0).nack(Retry::After(Duration::ZERO), "it broke <b>").unwrap();
        }
        says("is on attempt 4 of 20; the last one ended so: it broke &lt;b&gt;", "");
        keyed.claim(ClaimOptions::new()).unwrap().remove(0).nack(Retry::After(LONG), "no").unwrap();
        says("poison has had attempt 5 of 20; the last one ended so: no", "");
    }

    fn each_page_shows_what_there_is(place) {
        let client = filled(place);
        let queue = client.queue("mails");
        queue.limit_key("k", Some(stanchion::KeyLimits::new().weight(2))).unwrap();
        let lease = client.lock("invoice:42").acquire(LockOptions::new().label("web-3")).unwrap();
        let limiter = client.limiter("api", Limit::rate(1, Duration::from_secs(3_600))).unwrap();
        assert!(limiter.try_take(1).unwrap().is_allowed());
        let dashboard = Dashboard::start(place, &[]);
        for (path, texts) in [
            ("/", &["Queues", "mails", "invoice:42", "web-3"][..]),
            ("/queues", &["mails"]),
            ("/queues/mails", &["3 tasks are due", ": no consumer", "Nobody works on it", "stanchion queues stats mails"]),
            ("/queues/mails/tasks", &["import/x", "href=\"/queues/mails/tasks/a\""]),
            ("/queues/mails/tasks?state=dead", &["bad"]),
            ("/queues/mails/tasks/a", &["0 of 20", "Payloads are shown if"]),
            ("/queues/mails/dead", &["bad", "refused", "Kick all of these"]),
            ("/queues/mails/dead?reason=other", &["No task that fits is dead."]),
            ("/queues/mails/bulk?state=dead&verb=kick&reason=ref", &["Kick 1 dead task"]),
            ("/queues/mails/bulk?state=ready&verb=remove&prefix=imp", &["Remove 1 ready task of mails?", "begins with <code>imp</code>"]),
            ("/queues/mails/keys", &["<td>k</td>"]),
            ("/queues/mails/schedules", &["nightly", "0 3 * * *"]),
            ("/queues/mails/flows", &["import", "1 waiting, 1 put"]),
            ("/queues/mails/flows/import", &["href=\"/queues/mails/tasks/import%2Fx\"", "waiting", "class=\"node runs\""]),
            ("/locks", &["invoice:42"]),
            ("/locks?kind=semaphore", &["Nobody holds one of this kind"]),
            ("/locks/lock/invoice%3A42", &["web-3", "Nobody waits", "Type the name"]),
            ("/limiters", &["api", "Used up ahead for"]),
            ("/limiters?kind=fixed-window", &["Nothing was taken of one of this kind"]),
            ("/workers", &["Nobody works on any queue"]),
            ("/server", &["stanchion doctor"]),
            ("/search?q=invoice:42", &["/locks/lock/invoice%3A42"]),
            ("/search?q=bad", &["/queues/mails/tasks/bad"]),
            ("/assets/style.css", &["--accent"]),
            ("/assets/page.js", &["EventSource"]),
        ] {
            let page = dashboard.page(path);
            for text in texts {
                assert!(page.contains(text), "{path} has no {text:?}: {page}");
            }
            assert!(!page.contains("secret"), "{path} shows a payload");
        }
        for path in ["/none", "/queues/none", "/queues/mails/tasks/none", "/queues/mails/flows/none", "/locks/none/a", "/limiters?kind=odd"] {
            assert_eq!(dashboard.get(path).status, 404, "{path}");
        }
        assert_eq!(dashboard.get("/queues/mails/tasks?state=odd").status, 400);
        lease.release().unwrap();
    }

    fn a_picture_shows_what_comes_after_what(place) {
        let client = Client::open(place.url()).unwrap();
        let pages = (0..20).map(|number| Task::new(format!("page-{number}")));
        client.queue("flows").enqueue_flow(Flow::batch("join", pages).then(Task::new("all"))).unwrap();
        client.queue("flows").enqueue_flow(Flow::chain("two", [Task::new("x"), Task::new("y")])).unwrap();
        let wide = Flow::batch("wide", (0..3_000).map(|number| Task::new(number.to_string())));
        client.queue("flows").enqueue_flow(wide).unwrap();
        let dashboard = Dashboard::start(place, &[]);
        let count = |page: &str, what: &str| page.matches(what).count();
        // Those that are alike are one.
        let page = dashboard.page("/queues/flows/flows/join");
        assert_eq!((count(&page, "<rect class=\"node "), count(&page, "<path class=\"edge\"")), (2, 1), "{page}");
        assert!(page.contains("20 like page-0") && page.contains("page-0: 20 put"), "{page}");
        let page = dashboard.page("/queues/flows/flows/two");
        assert_eq!((count(&page, "<rect class=\"node "), count(&page, "<path class=\"edge\"")), (2, 1), "{page}");
        let page = dashboard.page("/queues/flows/flows/wide");
        assert!(page.contains("too many nodes for a picture") && page.contains("The first 500 of 3000"), "{page}");
    }

    fn many_tasks_are_treated_alike(place) {
        let client = Client::open(place.url()).unwrap();
        let queue = client.queue("mails");
        let later = SystemTime::now() + Duration::from_secs(3_600);
        let ids = |prefix: &'static str| (0..1_500).map(move |number| Task::new(format!("{prefix}{number}")));
        for tasks in [ids("a").collect::<Vec<_>>(), ids("b").map(|task| task.due(later)).collect()] {
            assert!(queue.enqueue_many(tasks).unwrap().iter().all(Result::is_ok));
        }
        let dashboard = Dashboard::start(place, &[]);
        let counts = || {
            let stats = queue.stats().unwrap();
            (stats.ready, stats.scheduled, stats.claimed, stats.dead)
        };
        let page = dashboard.page("/queues/mails/bulk?state=scheduled&verb=run-now&prefix=b1");
        assert!(page.contains("Run now 611 scheduled tasks of mails?"), "{page}");
        dashboard.act("/queues/mails/bulk", "state=scheduled&verb=run-now&prefix=b1");
        eventually(LONG, || counts() == (2_111, 889, 0, 0));
        dashboard.act("/queues/mails/bulk", "state=ready&verb=reschedule&prefix=b&minutes=60");
        eventually(LONG, || counts() == (1_500, 1_500, 0, 0));
        dashboard.act("/queues/mails/bulk", "state=scheduled&verb=remove");
        eventually(LONG, || counts() == (1_500, 0, 0, 0));
        let claims = queue.claim(ClaimOptions::new().max(3)).unwrap();
        assert_eq!(claims.len(), 3);
        dashboard.act("/queues/mails/bulk", "state=claimed&verb=cancel");
        eventually(LONG, || claims.iter().all(|claim| queue.get(claim.id()).unwrap().unwrap().cancelled));
        for claim in claims {
            claim.bury("no").unwrap();
        }
        dashboard.act("/queues/mails/bulk", "state=dead&verb=remove-dead&reason=no");
        eventually(LONG, || counts() == (1_497, 0, 0, 0));
        for form in ["state=dead&verb=cancel", "state=ready&verb=kick", "state=odd&verb=kick", "state=dead"] {
            let answer = dashboard.ask("POST", "/queues/mails/bulk", &[], form);
            assert_eq!(answer.status, 400, "{form}: {answer:?}");
        }
    }

    fn more_queues_than_a_look_asks_about_are_all_known(place) {
        let client = Client::open(place.url()).unwrap();
        let later = SystemTime::now() + Duration::from_secs(3_600);
        for number in 0..450 {
            client.queue(&format!("q{number}")).enqueue(Task::new("a").due(later)).unwrap();
        }
        client.queue("zz").enqueue(Task::new("a").due(SystemTime::now() - LONG)).unwrap();
        let dashboard = Dashboard::start(place, &[]);
        assert!(holds_within(LONG, || dashboard.page("/").contains("1 task is due, the first for ")));
        assert!(holds_within(LONG, || dashboard.page("/queues").matches("<tr>").count() == 452));
        assert!(dashboard.page("/search?q=zz").contains("/queues/zz"));
    }

    fn what_was_kept_of_a_queue_may_be_anything(place) {
        let client = stalled(place);
        let Begun::Compute(ticket) = client.begin_cached("stanchion-web:mails", CachedOptions::new(LONG)).unwrap()
        else {
            panic!("it is kept already")
        };
        ticket.store(br#"{"v":1,"attended":18446744073709551615,"minutes":[],"quarters":[]}"#.to_vec()).unwrap();
        let dashboard = Dashboard::start(place, &[]);
        assert!(holds_within(LONG, || dashboard.page("/").contains("2 tasks are due, the first for ")));
    }

    fn what_is_done_is_logged_also_if_nobody_waits(place) {
        let client = Client::open(place.url()).unwrap();
        let dashboard = Dashboard::start(place, &[]);
        for number in 0..60 {
            let mut stream = TcpStream::connect(&dashboard.address).unwrap();
            let head = format!("POST /queues/z{number}/pause HTTP/1.1\r\nHost: {}\r\n\r\n", dashboard.address);
            stream.write_all(head.as_bytes()).unwrap();
            // Hangs up sooner or later.
            std::thread::sleep(Duration::from_micros(number * 20));
        }
        let paused = || (0..60).filter(|number| client.queue(&format!("z{number}")).stats().unwrap().paused).count();
        let logged = || fs::read_to_string(place.path("web.err")).unwrap().matches("\"did\":\"pause\"").count();
        eventually(LONG, || paused() > 0 && logged() == paused());
    }

    fn a_task_that_has_gone_on_is_left_alone(place) {
        let client = filled(place);
        let queue = client.queue("mails");
        let dashboard = Dashboard::start(place, &[]);
        let claim = queue.claim(ClaimOptions::new()).unwrap().remove(0);
        let path = format!("/queues/mails/tasks/{}/remove", claim.id());
        assert!(dashboard.act(&path, "").contains("It runs by now; nothing was done."));
        claim.ack().unwrap();
        let page = dashboard.act("/queues/mails/tasks/b/remove-dead", "");
        assert!(page.contains("It is not dead any more; nothing was done."), "{page}");
    }

    fn actions_do_what_they_say(place) {
        let client = filled(place);
        let queue = client.queue("mails");
        let _lease = client.lock("invoice").acquire(LockOptions::new()).unwrap();
        let dashboard = Dashboard::start(place, &[]);
        assert!(dashboard.act("/queues/mails/pause", "").contains("The queue is paused."));
        assert!(queue.stats().unwrap().paused);
        assert!(dashboard.act("/queues/mails/resume", "").contains("The queue goes on."));
        assert!(!queue.stats().unwrap().paused);
        let due = |id: &str| queue.get(id).unwrap().unwrap().due;
        dashboard.act("/queues/mails/tasks/a/reschedule", "minutes=10");
        assert!(due("a") > SystemTime::now() + Duration::from_secs(500));
        dashboard.act("/queues/mails/tasks/a/run-now", "");
        assert!(due("a") <= SystemTime::now());
        assert!(dashboard.act("/queues/mails/tasks/b/remove", "").contains("The task is gone."));
        assert!(queue.get("b").unwrap().is_none());
        let page = dashboard.act("/queues/mails/tasks/bad/remove-dead", "");
        let undo = page.split_once("action=\"/undo/").unwrap().1.split_once('"').unwrap().0;
        assert!(dashboard.page("/queues/mails/tasks/bad").contains(&format!("/undo/{undo}")));
        let again = dashboard.act("/queues/mails/tasks/bad/remove-dead", "");
        assert!(again.contains(&format!("/undo/{undo}")), "two would have to be undone: {again}");
        assert!(dashboard.act(&format!("/undo/{undo}"), "").contains("nothing was removed"));
        assert_eq!(queue.get("bad").unwrap().unwrap().state, TaskState::Dead);
        dashboard.act("/queues/mails/bulk", "state=dead&verb=kick&reason=ref&prefix=");
        eventually(LONG, || queue.get("bad").unwrap().unwrap().state == TaskState::Ready);
        assert!(dashboard.act("/queues/mails/schedules/nightly/pause", "").contains("The schedule is paused."));
        assert!(queue.get_schedule("nightly").unwrap().unwrap().paused);
        assert!(dashboard.act("/queues/mails/schedules/nightly/run", "").contains("It has made the task"));
        dashboard.act("/queues/mails/schedules/nightly/remove", "");
        assert!(queue.get_schedule("nightly").unwrap().is_none());
        assert!(dashboard.act("/queues/mails/flows/import/cancel", "").contains("The flow is cancelled."));
        assert!(dashboard.act("/locks/lock/invoice/break", "typed=other").contains("nothing was done"));
        assert!(client.lock("invoice").is_locked().unwrap());
        assert!(dashboard.act("/locks/lock/invoice/break", "typed=invoice").contains("The lock is broken."));
        assert!(!client.lock("invoice").is_locked().unwrap());
        let did = || -> Vec<String> {
            let log = fs::read_to_string(place.path("web.err")).unwrap();
            let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            lines.map(|line| line["did"].as_str().unwrap().to_owned()).collect()
        };
        // The log is written beside the answers.
        eventually(LONG, || did().last().is_some_and(|last| last == "break"));
        assert_eq!(did()[..3], ["pause", "resume", "reschedule"]);
    }
}

#[test]
fn names_are_shown_as_text() {
    let place = Place::new();
    let client = Client::open(place.url()).unwrap();
    let name = "</textarea><script>alert(1)</script>\u{202e}";
    client.queue(name).enqueue(Task::new("<b>/../x").payload("<i>")).unwrap();
    let dashboard = Dashboard::start(&place, &["--show-payloads"]);
    let link = "/queues/%3C%2Ftextarea%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E%E2%80%AE";
    for path in ["/".to_owned(), link.to_owned(), format!("{link}/tasks/%3Cb%3E%2F%2E%2E%2Fx")] {
        let page = dashboard.page(&path);
        assert!(
            !page.contains("<script>alert") && !page.contains('\u{202e}') && !page.contains("<b>"),
            "{page}"
        );
        assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    }
    assert!(dashboard.page(&format!("{link}/tasks/%3Cb%3E%2F%2E%2E%2Fx")).contains("&lt;i&gt;"));
}

#[test]
fn only_its_own_pages_act_and_only_under_its_names() {
    let place = Place::new();
    let client = stalled(&place);
    let dashboard = Dashboard::start(&place, &[]);
    let pause = |headers: &[(&str, &str)]| dashboard.ask("POST", "/queues/mails/pause", headers, "").status;
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(pause(&[("Sec-Fetch-Site", site)]), 403, "{site}");
    }
    assert_eq!(pause(&[("Origin", "http://evil.example")]), 403);
    assert_eq!(dashboard.ask("GET", "/", &[("Host", "evil.example")], "").status, 421);
    for host in ["localhost:1", "10.0.0.7:7380", "[::1]"] {
        assert_eq!(dashboard.ask("GET", "/", &[("Host", host)], "").status, 200, "{host}");
    }
    assert!(!client.queue("mails").stats().unwrap().paused);
    let head = dashboard.get("/").head;
    for header in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "{head}");
    }
    assert_eq!(pause(&[("Origin", &format!("http://{}", dashboard.address))]), 303);
    let known = Dashboard::start(&place, &["--host", "dash.example"]);
    assert_eq!(known.ask("GET", "/", &[("Host", "dash.example")], "").status, 200);
}

#[test]
fn one_that_only_shows_refuses_every_action() {
    let place = Place::new();
    let client = stalled(&place);
    let dashboard = Dashboard::start(&place, &["--read-only"]);
    let page = dashboard.page("/queues/mails/tasks/a");
    assert!(page.contains("read-only") && !page.contains("method=\"post\""), "{page}");
    for path in [
        "/queues/mails/pause",
        "/queues/mails/tasks/a/remove",
        "/queues/mails/dead/kick",
        "/locks/lock/a/break",
        "/undo/1",
    ] {
        let answer = dashboard.ask("POST", path, &[("Sec-Fetch-Site", "same-origin")], "typed=a");
        assert_eq!(answer.status, 403, "{path}");
    }
    assert_eq!(client.queue("mails").stats().unwrap().ready, 2);
}

#[test]
fn who_comes_in_is_asked_in_each_way() {
    let place = Place::new();
    stalled(&place);
    // htpasswd -nbB ann secret
    fs::write(place.path("users"), "ann:$2y$05$4Emdcv5PCLeccozjbwUgHu7CbI10f8tmn8SrtBGi4M/bLFT47rZz2\n")
        .unwrap();
    fs::write(place.path("token"), "0123456789abcdef\n").unwrap();
    let token = Dashboard::start(&place, &["--token", "token"]);
    let refused = token.get("/");
    assert!(refused.status == 401 && refused.head.contains("www-authenticate: Bearer"), "{refused:?}");
    assert_eq!(token.ask("GET", "/", &[("Authorization", "Bearer 0123456789abcdef")], "").status, 200);
    let basic = Dashboard::start(&place, &["--auth", "users"]);
    assert!(basic.get("/assets/style.css").head.contains("www-authenticate: Basic"));
    let authorized = |secret: &str| basic.ask("GET", "/", &[("Authorization", secret)], "").status;
    assert_eq!((authorized("Basic YW5uOnNlY3JldA=="), authorized("Basic YW5uOm90aGVy")), (200, 401));
    let proxy = Dashboard::start(&place, &["--behind-proxy", "X-User"]);
    assert_eq!(proxy.get("/").status, 403);
    assert!(proxy.ask("GET", "/", &[("X-User", "ann")], "").body.contains("ann"));
}

#[test]
fn others_reach_it_only_if_somebody_is_asked() {
    let place = Place::new();
    assert!(
        place
            .finish(&["web", "--listen", "0.0.0.0:0"])
            .failed(2)
            .contains("give --auth, --token or --behind-proxy")
    );
    fs::write(place.path("short"), "short\n").unwrap();
    assert!(place.finish(&["web", "--token", "short"]).failed(2).contains("fewer than 16"));
    fs::write(place.path("plain"), "ann:secret\n").unwrap();
    assert!(place.finish(&["web", "--auth", "plain"]).failed(2).contains("htpasswd -B"));
}

#[test]
fn who_says_nothing_is_hung_up_on() {
    let place = Place::new();
    let dashboard = Dashboard::start(&place, &[]);
    let mut silent = TcpStream::connect(&dashboard.address).unwrap();
    silent.set_read_timeout(Some(LONG)).unwrap();
    silent.write_all(b"GET / HT").unwrap();
    let mut said = Vec::new();
    silent.read_to_end(&mut said).unwrap();
    assert!(dashboard.page("/").contains("What is wrong now"));
}

#[test]
fn viewers_are_told_of_each_look() {
    let place = Place::new();
    stalled(&place);
    let mut dashboard = Dashboard::start(&place, &[]);
    let mut stream = TcpStream::connect(&dashboard.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(stream, "GET /live HTTP/1.1\r\nHost: {}\r\n\r\n", dashboard.address).unwrap();
    let told = BufReader::new(stream).lines().map(Result::unwrap).filter(|line| line == "event: look");
    assert_eq!(told.take(3).count(), 3);
    dashboard.process.signal(Signal::SIGTERM);
    assert_eq!(dashboard.process.wait().code(), Some(0));
}

/// A browser takes two dots for the folder above: a schedule of that name is not its queue.
#[test]
fn names_of_dots_are_names() {
    let place = Place::new();
    let client = Client::open(place.url()).unwrap();
    let queue = client.queue("..");
    queue.enqueue(Task::new(".")).unwrap();
    queue.schedule(Schedule::new("..", "0 3 * * *")).unwrap();
    let dashboard = Dashboard::start(&place, &[]);
    assert!(dashboard.page("/queues").contains("href=\"/queues/..~\""));
    assert!(dashboard.page("/queues/..~").contains("href=\"/queues/..~/tasks/.~\""));
    assert!(dashboard.page("/queues/..~/tasks/.~").contains("Task . "));
    let schedules = dashboard.page("/queues/..~/schedules");
    assert!(schedules.contains("action=\"/queues/..~/schedules/..~/pause\""), "{schedules}");
    dashboard.act("/queues/..~/schedules/..~/pause", "");
    assert!(queue.get_schedule("..").unwrap().unwrap().paused && !queue.stats().unwrap().paused);
}

#[test]
fn a_lock_that_cannot_be_read_does_not_hide_the_others() {
    let place = Place::on_redis();
    let client = Client::open(place.url()).unwrap();
    let leases = ["good", "odd"].map(|name| client.lock(name).acquire(LockOptions::new()).unwrap());
    let mut connection = redis::Client::open(place.url()).unwrap().get_connection().unwrap();
    redis::cmd("DEL").arg("stanchion:meta:{Lock:odd}").exec(&mut connection).unwrap();
    redis::cmd("SET").arg("stanchion:meta:{Lock:odd}").arg("x").exec(&mut connection).unwrap();
    let page = Dashboard::start(&place, &[]).page("/locks");
    assert!(page.contains(">good<") && page.contains("cannot be read: "), "{page}");
    drop(leases);
}

#[test]
fn a_queue_that_cannot_be_read_does_not_hide_the_others() {
    let place = Place::on_redis();
    let client = stalled(&place);
    client.queue("broken").enqueue(Task::new("a")).unwrap();
    let mut raw = redis::Client::open(place.url()).unwrap().get_connection().unwrap();
    redis::cmd("DEL").arg("stanchion:ready:{Queue:broken}").exec(&mut raw).unwrap();
    redis::cmd("SET").arg("stanchion:ready:{Queue:broken}").arg("x").exec(&mut raw).unwrap();
    let dashboard = Dashboard::start(&place, &[]);
    eventually(LONG, || {
        let page = dashboard.page("/");
        page.contains("2 tasks are due, the first for ")
            && page.contains("href=\"/queues/broken\">broken</a>: ")
    });
    assert_ne!(dashboard.get("/queues/broken").status, 200);
}

#[test]
fn a_store_that_is_away_is_said_and_comes_back() {
    let server = RedisServer::builder().appendonly().start();
    let place = Place::with_url(&server.url());
    stalled(&place);
    let dashboard = Dashboard::start(&place, &["--timeout", "1"]);
    eventually(LONG, || dashboard.page("/").contains("no consumer"));
    server.kill9();
    eventually(LONG, || dashboard.page("/").contains("The store</span> cannot be looked at"));
    let away = dashboard.get("/queues/mails");
    assert!(away.status == 503 && away.body.contains("<h1>"), "{away:?}");
    server.start_again();
    eventually(LONG, || dashboard.page("/").contains("no consumer"));
}

/// Not even a lock of the doctor's, or the history.
#[test]
fn one_that_only_shows_writes_nothing() {
    let place = Place::on_redis();
    stalled(&place);
    let mut raw = redis::Client::open(place.url()).unwrap().get_connection().unwrap();
    let mut keys = || {
        let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut raw).unwrap();
        keys.sort();
        keys
    };
    let before = keys();
    let dashboard = Dashboard::start(&place, &["--read-only"]);
    eventually(LONG, || dashboard.page("/").contains("no consumer"));
    dashboard.page("/server");
    assert_eq!(keys(), before);
    drop(dashboard);
    let dashboard = Dashboard::start(&place, &[]);
    eventually(LONG, || dashboard.page("/").contains("no consumer"));
    assert_ne!(keys(), before, "this shows that it would be seen");
}

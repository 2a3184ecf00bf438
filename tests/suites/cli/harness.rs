//! Starting the command line, and waiting for what it does.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use stanchion_tests::wait::{Task, eventually, eventually_some, task};
use tempfile::TempDir;

/// Far longer than anything takes; dozens of processes may be running at once.
pub const LONG: Duration = Duration::from_secs(60);

/// A directory with a store of its own.
pub struct Place {
    dir: TempDir,
    url: String,
}

/// What a finished process left.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code; negative for a signal.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// A process that runs. Killed when dropped.
pub struct Running {
    child: Child,
    out: Option<Task<String>>,
    err: Option<Task<String>>,
}

impl Place {
    /// With a fresh SQLite store.
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let url = format!("sqlite:{}", dir.path().join("locks.db").display());
        Self { dir, url }
    }

    /// With a fresh database of a real Redis server.
    pub fn on_redis() -> Self {
        Self::with_url(&stanchion_tests::shared().fresh_db())
    }

    /// Where the store is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// With a store elsewhere.
    pub fn with_url(url: &str) -> Self {
        Self { dir: TempDir::new().unwrap(), url: url.to_owned() }
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Waits until a file in it has a whole line, and gives that.
    pub fn line(&self, name: &str) -> String {
        let whole = || fs::read_to_string(self.path(name)).ok().filter(|text| text.ends_with('\n'));
        eventually_some(LONG, whole).trim_end().to_owned()
    }

    /// Makes an empty file in it.
    pub fn touch(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    /// `stanchion` with arguments, in this directory, on this store.
    pub fn stanchion<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env("STANCHION_URL", &self.url).env_remove("XDG_STATE_HOME");
        command
    }

    /// Runs it to its end.
    pub fn finish<A: AsRef<OsStr>>(&self, args: &[A]) -> Outcome {
        Running::start(self.stanchion(args)).finish()
    }

    /// Starts it.
    pub fn start<A: AsRef<OsStr>>(&self, args: &[A]) -> Running {
        Running::start(self.stanchion(args))
    }

    /// Runs it to its end, with this on its stdin.
    pub fn feed<A: AsRef<OsStr>>(&self, args: &[A], input: impl AsRef<[u8]>) -> Outcome {
        let path = self.path("stdin");
        fs::write(&path, input).unwrap();
        let mut command = self.stanchion(args);
        command.stdin(File::open(path).unwrap());
        Running::start(command).finish()
    }

    /// Runs it to its end, with success; what it printed as lines of JSON.
    #[track_caller]
    pub fn json<A: AsRef<OsStr>>(&self, args: &[A]) -> Vec<Value> {
        let mut command = self.stanchion(args);
        command.arg("--json");
        let outcome = Running::start(command).finish();
        outcome.succeeded().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What `queues stats` says about the queue `q`.
    #[track_caller]
    pub fn stats(&self) -> Value {
        self.json(&["queues", "stats", "q"]).remove(0)
    }

    /// What `queues get` says about a task of the queue `q`.
    #[track_caller]
    pub fn task(&self, id: &str) -> Value {
        self.json(&["queues", "get", "q", id]).remove(0)
    }

    /// Works on a task that fails, and removes it; its id, what the worker left, and what was said about the task then.
    /// Again with another task if the pause after the failure was over before the worker found nothing more to do.
    pub fn fails_once(&self, work: &[&str]) -> (String, Outcome, Value) {
        let mut round = 0;
        eventually_some(LONG, || {
            round += 1;
            let id = format!("fails-{round}");
            self.finish(&["enqueue", "q", &id]).succeeded();
            let outcome = self.finish(work);
            let task = self.task(&id);
            self.finish(&["queues", "remove", "q", &id]).succeeded();
            (task["attempts"] == 1).then_some((id, outcome, task))
        })
    }

    /// Starts `run` with options on the lock `a`, with a script that writes its pid to `started` and then
    /// goes on; returns when it has.
    pub fn hold(&self, options: &[&str], script: &str) -> Running {
        let script = format!("echo $$ > started; {script}");
        let running = self.start(&[&["run"], options, &["a", "--", "sh", "-c", &script]].concat());
        self.line("started");
        running
    }

    /// The pid that a script wrote.
    pub fn pid(&self, name: &str) -> i32 {
        self.line(name).parse().unwrap()
    }

    /// What `locks show --json` says about the lock `a`.
    pub fn shown(&self) -> Value {
        let shown = self.finish(&["locks", "show", "a", "--json"]);
        assert_eq!(shown.code, 0, "{shown:?}");
        serde_json::from_str(&shown.out).unwrap()
    }
}

impl Outcome {
    fn new(status: ExitStatus, out: String, err: String) -> Self {
        let code = status.code().unwrap_or_else(|| -status.signal().unwrap());
        Self { code, out, err }
    }

    /// Checks the code, and that stderr is exactly one clear line; gives the line.
    #[track_caller]
    pub fn failed(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:?}");
        let line = self.err.strip_suffix('\n').unwrap_or_else(|| panic!("no line on stderr: {self:?}"));
        assert!(line.starts_with("stanchion: ") && !line.contains('\n'), "not one line: {self:?}");
        for debris in ["panicked", "Some(", "Error {", "RUST_BACKTRACE"] {
            assert!(!line.contains(debris), "{self:?}");
        }
        line
    }

    /// Checks that it succeeded and had nothing to say on stderr; gives stdout.
    #[track_caller]
    pub fn succeeded(&self) -> &str {
        assert_eq!((self.code, &*self.err), (0, ""), "{self:?}");
        &self.out
    }
}

impl Running {
    /// Starts a process and reads what it prints.
    pub fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self { child, out: Some(task(|| text(out))), err: Some(task(|| text(err))) }
    }

    /// As [`Running::start`], but its stdout is the command's own.
    pub fn start_with_stdout(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let err = child.stderr.take().unwrap();
        Self { child, out: None, err: Some(task(|| text(err))) }
    }

    /// As [`Running::start`], but its stderr is the command's own.
    pub fn start_with_stderr(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        Self { child, out: Some(task(|| text(out))), err: None }
    }

    /// Waits for its end, and for that of everybody who has its stdout.
    pub fn finish(mut self) -> Outcome {
        let status = self.wait();
        let out = self.out.take().map(|out| out.join_within(LONG)).unwrap_or_default();
        Outcome::new(status, out, self.err.take().unwrap().join_within(LONG))
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        eventually_some(LONG, || self.child.try_wait().unwrap())
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Its pid.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes two tests of each function: on SQLite, and on a real Redis server. The function gets a [`Place`].
macro_rules! on_both_stores {
    ($(fn $name:ident($place:ident) $body:block)+) => {$(
        mod $name {
            use super::*;
            fn run($place: &Place) $body
            #[test]
            fn sqlite() {
                run(&Place::new());
            }
            #[test]
            fn redis() {
                run(&Place::on_redis());
            }
        }
    )+};
}
pub(super) use on_both_stores;

/// Whether a process is gone, or only waits for being reaped.
pub fn is_gone(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.rsplit_once(") ").unwrap().1.starts_with(['Z', 'X']))
}

/// Waits until a process is gone.
#[track_caller]
pub fn goes_away(pid: i32) {
    eventually(LONG, || is_gone(pid));
}

fn text(mut stream: impl Read) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The program under test, of the profile that the tests were built with. It is no dependency of this
/// package, so it is built here if it is older than its sources.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().unwrap().parent().unwrap();
        let binary = profile.join("stanchion");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let sources = newest(&root.join("cli")).max(newest(&root.join("core/src")));
        if modified(&binary) < sources {
            let mut build = Command::new(env!("CARGO"));
            build.current_dir(root).args(["build", "--quiet", "--workspace", "--bin", "stanchion"]);
            build.arg("--target-dir").arg(profile.parent().unwrap());
            if profile.ends_with("release") {
                build.arg("--release");
            }
            assert!(build.status().unwrap().success(), "{build:?}");
        }
        binary
    })
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

fn newest(dir: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { newest(&path) } else { modified(&path) }).max().flatten()
}

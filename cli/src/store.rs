//! Opening the store: the one given, or the user's own.

use std::env;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use stanchion::ClientBuilder;
use stanchion::blocking::Client;

use crate::arguments::Globals;
use crate::failure::Failure;
use crate::report::Report;

/// Connects to the store that the arguments name.
pub fn open(globals: &Globals, report: &Report) -> Result<Client, Failure> {
    Ok(builder(globals, report)?.open_blocking()?)
}

/// What a client of that store is made with.
pub fn builder(globals: &Globals, report: &Report) -> Result<ClientBuilder, Failure> {
    let url = match globals.url.as_deref().filter(|url| !url.is_empty()) {
        Some(url) => url.to_owned(),
        None if globals.require_url => {
            let what = "no store given, and --require-url or STANCHION_REQUIRE_URL asks for one";
            return Err(Failure::usage(what, "pass --url or set STANCHION_URL"));
        }
        None => own_store(report)?,
    };
    if url == "memory:" {
        report.note("memory: is a store of this process alone: no other sees its locks and tasks");
    }
    let mut builder = stanchion::Client::builder(&url);
    if let Some(prefix) = &globals.lock_prefix {
        builder = builder.lock_prefix(prefix);
    }
    if let Some(prefix) = &globals.queue_prefix {
        builder = builder.queue_prefix(prefix);
    }
    if let Some(timeout) = globals.timeout {
        builder = builder.timeout(timeout);
    }
    Ok(builder)
}

/// The URL of this user's store on this machine. Said aloud: somebody who forgot the variable would
/// believe in a lock that other machines do not see.
fn own_store(report: &Report) -> Result<String, Failure> {
    let path = state_directory()?.join("stanchion").join("stanchion.db");
    let url = url_of(&path)?;
    if let Some(directory) = path.parent() {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        created
            .map_err(|error| Failure::system(&format!("creating {} failed", directory.display()), &error))?;
    }
    report.note(&format!(
        "no --url or STANCHION_URL: using {}, which only this user on this machine sees",
        path.display()
    ));
    Ok(url)
}

/// As the XDG base directory specification says: a relative path is ignored.
fn state_directory() -> Result<PathBuf, Failure> {
    let absolute = |variable| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state"))).ok_or_else(|| {
        let what =
            "no store given, and neither XDG_STATE_HOME nor HOME has an absolute path for the embedded one";
        Failure::usage(what, "pass --url or set STANCHION_URL")
    })
}

fn url_of(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().ok_or_else(|| {
        let what = format!("the path {} is not UTF-8", path.display());
        Failure::usage(what, "pass --url or set STANCHION_URL")
    })?;
    Ok(format!("sqlite:{}", text.replace('%', "%25").replace('?', "%3F")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]
    use super::*;

    #[test]
    fn a_path_with_url_letters_stays_itself() {
        assert_eq!(url_of(Path::new("/a?b/50%/x y.db")).unwrap(), "sqlite:/a%3Fb/50%25/x y.db");
    }
}

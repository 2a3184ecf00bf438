//! What can be done on the pages. Each action is one verb of the store's, is logged with who did it, and leads back to a page
//! that says what became of it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;
use stanchion::{Cancelled, DeadTasks, Error, Queue, Receipt, Removed, Rescheduled, TaskState};

use crate::web::App;
use crate::web::bulk::{Verb, Which, due_in, perform};
use crate::web::describe::{task_link, tasks_link};
use crate::web::failing::Failing;
use crate::web::html::{Reader, many, number};
use crate::web::look::handle;
use crate::web::notes::Note;
use crate::web::pages::Names;
use crate::web::pages::flows::flow_link;
use crate::web::pages::locks::kind;
use crate::web::pages::queue::link;
use crate::web::problems::lock_link;

/// For how long the removal of a dead task can be undone.
const UNDO: Duration = Duration::from_secs(60);

/// What an action needs.
type Doer = (State<Arc<App>>, Extension<Reader>);
/// The page to which it leads, or why it was not done.
type Done = Result<Response, Failing>;

/// A name that was typed.
#[derive(Debug, Deserialize)]
pub struct Typed {
    typed: String,
}

/// In how long a task is due.
#[derive(Debug, Deserialize)]
pub struct Due {
    minutes: u64,
}

/// Pauses a queue, or resumes it.
pub async fn queue((app, reader): Doer, Names([name, verb]): Names<2>) -> Done {
    let queue = app.client.queue(&name);
    let done = match &*verb {
        "pause" => queue.pause().await.map(|()| "The queue is paused.".to_owned()),
        "resume" => queue.resume().await.map(|()| "The queue goes on.".to_owned()),
        _ => return Err(nothing()),
    };
    told(&app, &reader, &verb, &[&name], &link(&name), done)
}

/// Does something with one task.
pub async fn task(
    (app, reader): Doer,
    Names([name, id, verb]): Names<3>,
    form: Result<Form<Due>, FormRejection>,
) -> Done {
    let queue = app.client.queue(&name);
    let page = task_link(&name, &id);
    let (back, done) = match &*verb {
        "remove" => (link(&name), removed(&queue, &id).await),
        "cancel" => (
            page,
            queue.cancel(&id).await.map(|cancelled| match cancelled {
                Cancelled::Running => "Its run is told to end.".to_owned(),
                Cancelled::Removed => "It did not run any more, and is gone.".into(),
                _ => "There was none.".into(),
            }),
        ),
        "run-now" => (page, queue.reschedule(&id, due_in(0)).await.map(rescheduled)),
        "reschedule" => {
            let Ok(Form(due)) = form else { return Err(Failing::Wrong("It was not said when.".into())) };
            (page, queue.reschedule(&id, due_in(due.minutes)).await.map(rescheduled))
        }
        "kick" => (
            page,
            queue.kick(DeadTasks::ids([id.as_str()])).await.map(|kicked| match kicked {
                0 => "No task of this id is dead, or one lives.".to_owned(),
                _ => "It is ready again.".into(),
            }),
        ),
        "remove-dead" => {
            let found = queue.get(&id).await?.filter(|task| task.state == TaskState::Dead);
            let Some(task) = found else {
                return Ok(led(&app, &page, "It is not dead any more; nothing was done.".into(), true));
            };
            return Ok(remove_later(&app, &reader, name, id, task.receipt));
        }
        _ => return Err(nothing()),
    };
    told(&app, &reader, &verb, &[&name, &id], &back, done)
}

/// A dead task goes in a minute, and no other record of its id: until then nothing is lost, whatever becomes of this process.
fn remove_later(app: &Arc<App>, reader: &Reader, name: String, id: String, receipt: Receipt) -> Response {
    let back = |number| format!("{}?state=dead&note={number}", tasks_link(&name));
    if let Some(number) = app.notes.removal_of(&name, &id) {
        return Redirect::to(&back(number)).into_response();
    }
    let note = Note {
        text: format!("{id} will be removed in a minute."),
        undo_until: Some(Instant::now() + UNDO),
        removes: Some([name.clone(), id.clone()]),
        ..Note::default()
    };
    let number = app.notes.add(note);
    let back = back(number);
    log(app, reader, "remove_dead_later", &[&name, &id], "noted");
    let (app, reader) = (Arc::clone(app), reader.clone());
    tokio::spawn(async move {
        tokio::time::sleep(UNDO).await;
        if !app.notes.is_due(number) {
            return;
        }
        let removed = app.client.queue(&name).remove_dead(DeadTasks::receipts([receipt])).await;
        let (text, is_bad) = match &removed {
            Ok(0) => (format!("{id} was not dead any more."), false),
            Ok(_) => (format!("{id} is removed."), false),
            Err(error) => (format!("{id} was not removed: {error}"), true),
        };
        log(&app, &reader, "remove_dead", &[&name, &id], &text);
        app.notes.set(number, Note { text, is_bad, ..Note::default() });
    });
    Redirect::to(&back).into_response()
}

/// Takes back what was to be done in a minute.
pub async fn undo((app, reader): Doer, Path(number): Path<u64>) -> Done {
    let Some([queue, id]) = app.notes.undo(number) else {
        return Err(Failing::Wrong("It is too late to undo this.".into()));
    };
    log(&app, &reader, "undo", &[&queue, &id], "nothing was removed");
    Ok(led(&app, "/queues", "Undone: nothing was removed.".into(), false))
}

/// Does something with all that are meant, in steps.
pub async fn bulk((app, reader): Doer, Names([name]): Names<1>, Form(which): Form<Which>) -> Done {
    let (state, verb) = which.order()?;
    if verb == Verb::Reschedule && which.minutes.is_none() {
        return Err(Failing::Wrong("It was not said when.".into()));
    }
    let note = app.notes.add(Note { text: "It begins".into(), goes_on: true, ..Note::default() });
    let back = format!("{}?state={}&note={note}", tasks_link(&name), state.name());
    let of = [name.clone(), which.state.clone(), which.prefix.clone(), which.reason.clone()];
    let log = move |app: &App, reader: &Reader, outcome: &str| {
        let of: Vec<&str> = of.iter().map(String::as_str).collect();
        log(app, reader, &format!("{}_many", verb.name()), &of, outcome);
    };
    log(&app, &reader, "begun");
    let (app, reader) = (Arc::clone(&app), reader.0.clone());
    tokio::spawn(async move {
        let tell = |count| {
            let text = format!("{} so far", number(count));
            app.notes.set(note, Note { text, goes_on: true, ..Note::default() });
        };
        let (count, error) = perform(&app.client.queue(&name), &which, tell).await;
        let mut text = format!("{} {}.", many(count, "task is", "tasks are"), verb.did());
        if let Some(error) = &error {
            text += &format!(" Then it failed: {error}");
        }
        log(&app, &reader, &text);
        app.notes.set(note, Note { text, is_bad: error.is_some(), ..Note::default() });
    });
    Ok(Redirect::to(&back).into_response())
}

/// Does something with a schedule.
pub async fn schedule((app, reader): Doer, Names([name, id, verb]): Names<3>) -> Done {
    let queue = app.client.queue(&name);
    let was =
        |there: bool, text: &str| if there { text.to_owned() } else { "There is no such schedule.".into() };
    let done = match &*verb {
        "pause" => queue.pause_schedule(&id).await.map(|there| was(there, "The schedule is paused.")),
        "resume" => queue.resume_schedule(&id).await.map(|there| was(there, "The schedule goes on.")),
        "run" => queue.run_schedule(&id).await.map(|task| match task {
            Some(task) => format!("It has made the task {task}."),
            None => "There is no such schedule.".into(),
        }),
        "remove" => queue.remove_schedule(&id).await.map(|there| was(there, "The schedule is gone.")),
        _ => return Err(nothing()),
    };
    told(
        &app,
        &reader,
        &format!("{verb}_schedule"),
        &[&name, &id],
        &format!("{}/schedules", link(&name)),
        done,
    )
}

/// Does something with a flow.
pub async fn flow((app, reader): Doer, Names([name, id, verb]): Names<3>) -> Done {
    let queue = app.client.queue(&name);
    let done = match &*verb {
        "cancel" => queue.cancel_flow(&id).await.map(|there| match there {
            true => "The flow is cancelled.".to_owned(),
            false => "It had ended.".into(),
        }),
        "retry" => queue.retry_flow(&id).await.map(|there| match there {
            true => "What had not succeeded runs again.".to_owned(),
            false => "There is no such flow.".into(),
        }),
        _ => return Err(nothing()),
    };
    told(&app, &reader, &format!("{verb}_flow"), &[&name, &id], &flow_link(&name, &id), done)
}

/// Breaks a lock whose name was typed.
pub async fn break_lock(
    (app, reader): Doer,
    Names([asked, name]): Names<2>,
    Form(typed): Form<Typed>,
) -> Done {
    let kind = kind(&asked)?;
    let back = lock_link(kind, &name);
    if typed.typed != name {
        return Ok(led(
            &app,
            &back,
            "The name that was typed is another one; nothing was done.".into(),
            true,
        ));
    }
    let done = handle(&app.client, kind, &name).break_lease().await.map(|broken| match broken {
        true => "The lock is broken.".to_owned(),
        false => "Nobody held it.".into(),
    });
    told(&app, &reader, "break", &[kind.name(), &name], &back, done)
}

/// Who looked at a task that waits does not mean to end a run.
async fn removed(queue: &Queue, id: &str) -> Result<String, Error> {
    if queue.get(id).await?.is_some_and(|task| task.state == TaskState::Claimed) {
        return Ok("It runs by now; nothing was done.".into());
    }
    Ok(match queue.remove(id, None).await? {
        Removed::Removed => "The task is gone.".into(),
        _ => "There was none.".into(),
    })
}

fn rescheduled(done: Rescheduled) -> String {
    match done {
        Rescheduled::Moved(_) => "It has another time.".into(),
        Rescheduled::Claimed => "It runs.".into(),
        Rescheduled::Dead => "It is dead.".into(),
        _ => "There is none.".into(),
    }
}

fn nothing() -> Failing {
    Failing::Wrong("There is nothing of the kind to be done.".into())
}

/// Logs what was done, and leads back.
fn told(
    app: &App,
    reader: &Reader,
    verb: &str,
    of: &[&str],
    back: &str,
    done: Result<String, Error>,
) -> Done {
    match done {
        Ok(text) => {
            log(app, reader, verb, of, &text);
            Ok(led(app, back, text, false))
        }
        Err(error) => {
            log(app, reader, verb, of, &error.to_string());
            Err(error.into())
        }
    }
}

fn led(app: &App, back: &str, text: String, is_bad: bool) -> Response {
    let note = app.notes.add(Note { text, is_bad, ..Note::default() });
    Redirect::to(&format!("{back}?note={note}")).into_response()
}

fn log(app: &App, reader: &Reader, verb: &str, of: &[&str], outcome: &str) {
    app.journal.note(json!({
        "at": crate::web::html::stamp(SystemTime::now()),
        "who": if reader.who.is_empty() { None } else { Some(&reader.who) },
        "did": verb,
        "of": of,
        "outcome": outcome,
    }));
}

//! The walk: depth first, one step deeper each time, so that the first counterexample is a shortest one. States that
//! were seen before with as much depth left are not entered again.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::world::{Game, World};

/// When nothing goes wrong, everything comes to an end in so many moves, and in so much time.
const CALM_MOVES: u32 = 2_000;
const CALM_TIME: Duration = Duration::from_secs(60);

/// How far a walk goes.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// At least so deep, however long it takes.
    pub least: u32,
    /// At most so deep.
    pub most: u32,
    /// No deeper once it took so long.
    pub time: Duration,
}

/// What came of a walk.
pub struct Walked {
    /// Every move of all interleavings was judged.
    pub safe: Reached,
    /// From all these states everybody got what he waited for, and came to an end.
    pub live: Reached,
    /// States on the way to those ends.
    pub calms: usize,
    pub moves: u64,
    /// What the store did.
    pub performed: u64,
    pub took: Duration,
    pub broken: Option<Broken>,
}

/// All states within so many moves.
#[derive(Clone, Copy, Default)]
pub struct Reached {
    pub depth: u32,
    pub states: usize,
}

/// A counterexample.
pub struct Broken {
    pub path: Vec<usize>,
    pub why: String,
    pub trace: Vec<String>,
}

enum End {
    Broken(String),
    OutOfTime,
}

/// One of the two: the ends of a path take much longer than its last move, so they are looked at less deep.
#[derive(Default)]
struct Walk {
    /// How much depth was left when a state was entered.
    seen: HashMap<u64, u32>,
    /// States from which all goes well, if that is looked at.
    calm: Option<HashSet<u64>>,
    /// The moves from the root, each by its number.
    path: Vec<usize>,
    moves: u64,
    reached: Reached,
    took: Duration,
    until: Option<Instant>,
    is_over: bool,
}

/// Plays everything that can happen from here, half of the time for each of the two.
pub fn walk<G: Game>(root: &World<G>, bounds: Bounds) -> Walked {
    let mut walks = [Walk::default(), Walk { calm: Some(HashSet::new()), ..Walk::default() }];
    let mut broken = None;
    while broken.is_none()
        && let Some(walk) = walks.iter_mut().filter(|walk| !walk.is_over).min_by_key(|walk| walk.took)
    {
        broken = walk.go_deeper(root, bounds).map(|why| {
            let path = std::mem::take(&mut walk.path);
            let trace = retell(root, &path);
            Broken { path, why, trace }
        });
    }
    let [safe, live] = walks;
    Walked {
        safe: safe.reached,
        live: live.reached,
        calms: live.calm.map_or(0, |calm| calm.len()),
        moves: safe.moves + live.moves,
        performed: root.stage.borrow().performed,
        took: safe.took + live.took,
        broken,
    }
}

impl Walk {
    /// One move deeper than before; why that is broken, if it is.
    fn go_deeper<G: Game>(&mut self, root: &World<G>, bounds: Bounds) -> Option<String> {
        let depth = self.reached.depth + 1;
        let began = Instant::now();
        let left = (bounds.time / 2).saturating_sub(self.took);
        self.until = (depth > bounds.least).then_some(began + left);
        self.path.clear();
        let entered = self.enter(root, depth);
        self.took += began.elapsed();
        match entered {
            Ok(()) => {
                // If nothing new was met, there is nothing.
                self.is_over = depth == bounds.most || self.seen.len() == self.reached.states;
                self.reached = Reached { depth, states: self.seen.len() };
                None
            }
            Err(End::OutOfTime) => {
                self.is_over = true;
                None
            }
            Err(End::Broken(why)) => Some(why),
        }
    }

    fn enter<G: Game>(&mut self, world: &World<G>, left: u32) -> Result<(), End> {
        for (number, chosen) in world.moves().into_iter().enumerate() {
            self.moves += 1;
            if self.moves.is_multiple_of(64) && self.until.is_some_and(|until| Instant::now() > until) {
                return Err(End::OutOfTime);
            }
            let mut next = world.clone();
            self.path.push(number);
            next.make(chosen).map_err(End::Broken)?;
            let seen = self.seen.entry(next.digest()).or_insert(0);
            if *seen < left {
                *seen = left;
                if left > 1 {
                    self.enter(&next, left - 1)?;
                } else if self.calm.is_some() {
                    self.calm(&next)?;
                }
            }
            self.path.pop();
        }
        Ok(())
    }

    /// From here nothing goes wrong: everybody must get what he waits for.
    fn calm<G: Game>(&mut self, world: &World<G>) -> Result<(), End> {
        G::compare(world).map_err(End::Broken)?;
        for keeps_mail in [true, false] {
            calm_end(world, keeps_mail, self.calm.as_mut()).map_err(|why| {
                let how = if keeps_mail { "comes" } else { "is lost" };
                End::Broken(format!("{why} (when all is calm, and what was on its way {how})"))
            })?;
        }
        Ok(())
    }
}

/// Goes on without faults until all is over, or until a state from which that is known to go well.
fn calm_end<G: Game>(
    world: &World<G>,
    keeps_mail: bool,
    mut known: Option<&mut HashSet<u64>>,
) -> Result<(), String> {
    let mut world = world.clone();
    world.calm_down(keeps_mail)?;
    let until = world.now + CALM_TIME;
    for _ in 0..CALM_MOVES {
        if let Some(known) = &mut known
            && !known.insert(world.digest())
        {
            return Ok(());
        }
        let Some(chosen) = world.calm_move() else { return G::epilogue(&world) };
        world.make(chosen)?;
        if world.now > until {
            break;
        }
    }
    Err("liveness: it does not come to an end".into())
}

/// What happens on a path, for reading.
pub fn retell<G: Game>(root: &World<G>, path: &[usize]) -> Vec<String> {
    let told = Rc::new(RefCell::new(Vec::new()));
    let mut world = root.clone();
    world.told = Some(Rc::clone(&told));
    let mut broken = None;
    for number in path {
        let Some(chosen) = world.moves().get(*number).copied() else { break };
        if let Err(why) = world.make(chosen) {
            broken = Some(why);
            break;
        }
    }
    if broken.is_none() {
        broken = [true, false].into_iter().find_map(|keeps| {
            let length = told.borrow().len();
            let result = calm_end(&world, keeps, None);
            if result.is_ok() {
                told.borrow_mut().truncate(length);
            }
            result.err()
        });
    }
    let mut lines = std::mem::take(&mut *told.borrow_mut());
    lines.extend(broken.map(|why| format!("broken: {why}")));
    lines
}

impl Broken {
    /// For a failing test.
    pub fn told(&self, world: &str) -> String {
        let mut text = format!("{world}: {}\n", self.why);
        for line in &self.trace {
            let _ = writeln!(text, "  {line}");
        }
        let path: Vec<String> = self.path.iter().map(usize::to_string).collect();
        let _ = write!(text, "  again: STANCHION_WORLD='{world}' STANCHION_PATH={}", path.join("."));
        text
    }
}

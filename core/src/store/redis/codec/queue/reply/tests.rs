use super::*;
use crate::protocol::{
    Abandon, CallId, Cancel, Claim, ClientId, Configure, DeadOnes, Due, Enqueue, Events, ExtendClaim, Fire,
    FireSchedule, Get, LimitKey, List, ListFlows, ListKeys, ListSchedules, LostNodes, Missed, NewSchedule,
    NewTask, OnDuplicate, Overlap, Pause, PauseSchedule, Peek, Pop, PostMessages, PutFlow, PutSchedules,
    ReadNodes, ReadOutbox, Remove, Reschedule, ResultOf, Settle, Settlement, StepFlows, Sweep, Verdict,
};
use crate::store::redis::script::SCRIPTS;

/// Every verb, about one task each.
fn verbs() -> Vec<QueueVerb> {
    let id = || TaskId::stored(b"a");
    let call = CallId { client: ClientId(1), slot: 0, number: 1 };
    let task = NewTask {
        key: None,
        id: id(),
        body: Arc::from(*b"b"),
        due: Due::Now,
        priority: 0,
        max_attempts: 8,
        expires: None,
        on_duplicate: OnDuplicate::Keep,
        node: None,
    };
    let settle = Settle {
        items: Arc::new([Settlement { id: id(), receipt: Receipt::new(1), verdict: Verdict::Ack }]),
    };
    let claim = Claim { call, max: 1, lease: Duration::from_secs(1), waiter: None, consumer: "1 h l".into() };
    let sweep = Sweep::new(DeadOnes::Oldest, 1);
    let schedule = NewSchedule {
        key: None,
        id: id(),
        timing: "".into(),
        missed: Missed::Last,
        overlap: Overlap::Queue,
        paused: false,
        body: Arc::from(*b"b"),
        priority: 0,
        max_attempts: 8,
        expires: None,
    };
    let fire = FireSchedule {
        id: id(),
        version: Version::new(1),
        cursor: 1,
        due: None,
        missed: 0,
        overlap: Overlap::Queue,
        tasks: vec![(id(), 1)],
    };
    vec![
        QueueVerb::Enqueue(Enqueue { call, timeout: Duration::ZERO, tasks: Arc::new([task]) }),
        QueueVerb::Claim(claim.clone()),
        QueueVerb::Settle(settle.clone()),
        QueueVerb::SettleAndClaim(settle, claim),
        QueueVerb::ExtendClaim(ExtendClaim {
            id: id(),
            receipt: Receipt::new(1),
            lease: Duration::from_secs(1),
            progress: None,
        }),
        QueueVerb::Abandon(Abandon { call: None, waiter: None, consumer: "1 h l".into() }),
        QueueVerb::Pop(Pop { max: 1 }),
        QueueVerb::Peek(Peek { max: 1 }),
        QueueVerb::Get(Get { id: id() }),
        QueueVerb::Result(ResultOf { id: id(), version: Version::NONE, waiter: None }),
        QueueVerb::List(List {
            state: TaskState::Ready,
            prefix: "".into(),
            bodies: true,
            from: None,
            max: 1,
        }),
        QueueVerb::Remove(Remove { id: id(), version: None }),
        QueueVerb::Cancel(Cancel { id: id() }),
        QueueVerb::Reschedule(Reschedule { id: id(), due: Due::Now }),
        QueueVerb::Kick(sweep.clone()),
        QueueVerb::RemoveDead(sweep),
        QueueVerb::Stats,
        QueueVerb::Consumers,
        QueueVerb::Pause(Pause { paused: true }),
        QueueVerb::Purge,
        QueueVerb::Configure(Configure::default()),
        QueueVerb::Events(Events { after: None, waiter: None }),
        QueueVerb::LimitKey(LimitKey { key: TaskKey::stored(b"k"), limits: None }),
        QueueVerb::ListKeys(ListKeys::Page { from: None, max: 1 }),
        QueueVerb::PutSchedules(PutSchedules { owner: None, schedules: Arc::new([schedule]) }),
        QueueVerb::ListSchedules(ListSchedules::Due { max: 1, until: 0 }),
        QueueVerb::Fire(Fire { schedules: Arc::new([fire]) }),
        QueueVerb::PauseSchedule(PauseSchedule { id: id(), paused: true }),
        QueueVerb::RemoveSchedule(id()),
        QueueVerb::PutFlow(PutFlow {
            id: id(),
            token: 1,
            first: 0,
            nodes: Arc::new([]),
            plan: None,
            adds_to: None,
        }),
        QueueVerb::ReadOutbox(ReadOutbox { max: 1 }),
        QueueVerb::StepFlows(StepFlows { first: 0, through: 0, flows: Arc::new([]) }),
        QueueVerb::PostMessages(PostMessages { source: None, messages: Arc::new([]) }),
        QueueVerb::GetFlow(id()),
        QueueVerb::ListFlows(ListFlows { from: None, max: 1 }),
        QueueVerb::ReadNodes(ReadNodes { flow: id(), nodes: Arc::new([0]), results: true }),
        QueueVerb::LostNodes(LostNodes {
            nodes: Arc::new([(id(), NodeOf { flow: id(), node: 0, home: None })]),
        }),
    ]
}

#[test]
fn every_verb_is_asked() {
    let scripts = SCRIPTS.all().into_iter().filter(|(_, script)| script.keys[0] == "INTAKE");
    let scripts: Vec<_> = scripts.map(|(verb, _)| verb).collect();
    let asked: Vec<_> = verbs().iter().map(QueueVerb::name).collect();
    assert_eq!(asked, scripts, "`verbs` has not all of them, or in another order");
}

fn ints(numbers: &[i64]) -> Value {
    Value::Array(numbers.iter().map(|number| Value::Int(*number)).collect())
}

fn bulk(bytes: &[u8]) -> Value {
    Value::BulkString(bytes.to_vec())
}

#[test]
fn nonsense_is_none_and_never_a_panic() {
    // A task with a field too few, one with a field of another kind, and one that ends too early.
    let packed: [&[u8]; 4] =
        [b"\x91\x01", b"\x9b\xa0\xa0\xa0\xa0\xa0\xa0\xa0\xa0\xa0\xa0\xa0", b"\x9b\x01", b""];
    let mut replies = vec![Value::Nil, Value::Okay, Value::Int(15), Value::Array(vec![]), bulk(b"x")];
    for code in [-1, 0, 99, i64::MAX].into_iter().chain(Code::ALL.iter().map(|(_, code)| *code as i64)) {
        replies.extend([ints(&[code, -7, 99]), ints(&[code, 1, 2, 3, 4, 5, 6, 7, 8])]);
        replies.push(Value::Array(vec![Value::Int(code), Value::Nil, Value::Nil]));
        for packed in packed {
            let task = [bulk(b"a"), bulk(packed), bulk(b"b"), Value::Int(5)];
            replies.push(Value::Array([Value::Int(code)].into_iter().chain(task).collect()));
            let told = [bulk(b"a"), Value::Int(2), bulk(packed), bulk(b"b"), Value::Int(5), Value::Int(-1)];
            replies.push(Value::Array([Value::Int(code)].into_iter().chain(told).collect()));
        }
    }
    for verb in verbs() {
        for reply in &replies {
            assert_eq!(decode(&verb, reply), None, "{verb:?} {reply:?}");
        }
    }
}

#[test]
fn something_left_over_is_nonsense() {
    let verbs = verbs();
    let remove = verbs.iter().find(|verb| verb.name() == "remove").unwrap();
    let removed = Code::Removed as i64;
    assert_eq!(decode(remove, &ints(&[removed])), Some(QueueReply::Remove(Removed::Removed)));
    assert_eq!(decode(remove, &ints(&[removed, 1])), None);
}

#[test]
fn what_is_due_beside_a_claim_is_told_once_and_in_order() {
    let paused = |codes: &[Code]| {
        let codes: Vec<_> = codes.iter().chain([&Code::Paused]).map(|code| *code as i64).chain([5]).collect();
        decode(&verbs()[1], &ints(&codes))
    };
    let within = || Box::new(ClaimReply::Paused { rank: 5 });
    let flows = || ClaimReply::FlowsDue(within());
    assert_eq!(paused(&[Code::FlowsDue]), Some(QueueReply::Claim(flows())));
    let both = ClaimReply::SchedulesDue(Box::new(flows()));
    assert_eq!(paused(&[Code::SchedulesDue, Code::FlowsDue]), Some(QueueReply::Claim(both)));
    for codes in [
        [Code::FlowsDue, Code::SchedulesDue],
        [Code::FlowsDue, Code::FlowsDue],
        [Code::SchedulesDue, Code::SchedulesDue],
    ] {
        assert_eq!(paused(&codes), None);
    }
}

#[test]
fn ids_of_the_intake_may_be_no_text() {
    let fields = b"\x9b\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\xa1x";
    let reply = [Value::Int(Code::Given as i64), bulk(b"\xff"), bulk(fields), bulk(b"b"), Value::Int(9)];
    let Some(QueueReply::Claim(ClaimReply::Claimed(tasks))) =
        decode(&verbs()[1], &Value::Array(reply.into()))
    else {
        panic!("no tasks")
    };
    assert_eq!(
        (tasks[0].id.as_str(), tasks[0].version, tasks[0].receipt),
        ("\u{fffd}", Version::new(1), Receipt::new(8))
    );
}

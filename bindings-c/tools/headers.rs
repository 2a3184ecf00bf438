//! Writes the headers of the C library anew. With `--check` it writes nothing, and fails if they are not up to date.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cbindgen::{
    Builder, Config, DocumentationLength, DocumentationStyle, EnumConfig, ExportConfig, Language, Style,
};

/// In the order in which they are read.
const FILES: [&str; 37] = [
    "version",
    "error",
    "arguments",
    "clock",
    "client",
    "shared",
    "options",
    "holders",
    "waiters",
    "lock",
    "kinds",
    "limiter",
    "cached",
    "lease",
    "task",
    "answers",
    "claim",
    "queue",
    "tasks",
    "manage",
    "result",
    "task_events",
    "dead",
    "schedule",
    "schedules",
    "scheduling",
    "consumers",
    "limits",
    "flow",
    "nodes",
    "flows",
    "inputs",
    "settings",
    "events",
    "worker",
    "listing",
    "metrics",
];
/// Enums that no function names: all are passed as numbers of a fixed size.
const ENUMS: [&str; 17] = [
    "stanchion_status",
    "stanchion_held_as",
    "stanchion_loss",
    "stanchion_on_duplicate",
    "stanchion_outcome",
    "stanchion_task_state",
    "stanchion_limit_kind",
    "stanchion_gate",
    "stanchion_verdict_kind",
    "stanchion_event_kind",
    "stanchion_happened",
    "stanchion_missed",
    "stanchion_overlap",
    "stanchion_schedule_outcome",
    "stanchion_after_all",
    "stanchion_flow_state",
    "stanchion_node_state",
];

fn main() -> ExitCode {
    let check = std::env::args().any(|argument| argument == "--check");
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut stale = false;
    for (file, config) in [("include/stanchion.h", for_c(package)), ("php/stanchion.ffi.h", for_php())] {
        let text = match header(package, config) {
            Ok(text) => text,
            Err(problem) => {
                eprintln!("{file}: {problem}");
                return ExitCode::FAILURE;
            }
        };
        let path = package.join(file);
        if fs::read_to_string(&path).is_ok_and(|kept| kept == text) {
            continue;
        }
        if check {
            eprintln!("{file} is not what its sources say; run: make headers");
            stale = true;
        } else if let Err(problem) = fs::write(&path, text) {
            eprintln!("{file}: {problem}");
            return ExitCode::FAILURE;
        }
    }
    if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn header(package: &Path, config: Config) -> Result<String, String> {
    let flat = config.include_guard.is_none();
    let mut builder = Builder::new().with_config(config);
    for file in FILES {
        let source: PathBuf = package.join("src").join(file).with_extension("rs");
        builder = builder.with_src(source);
    }
    let bindings = builder.generate().map_err(|problem| problem.to_string())?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).map_err(|problem| problem.to_string())?;
    let lines: Vec<String> =
        text.trim_end().lines().map(|line| if flat { flattened(line) } else { line.into() }).collect();
    Ok(lines.join("\n") + "\n")
}

/// A constant without the preprocessor.
fn flattened(line: &str) -> String {
    match line.strip_prefix("#define ").and_then(|constant| constant.split_once(' ')) {
        Some((name, value)) => format!("enum {{ {name} = {value} }};"),
        None => line.to_owned(),
    }
}

fn common() -> Config {
    Config {
        language: Language::C,
        style: Style::Both,
        usize_is_size_t: true,
        line_length: 110,
        documentation_length: DocumentationLength::Full,
        documentation_style: DocumentationStyle::C99,
        enumeration: EnumConfig::default(),
        export: ExportConfig {
            include: ENUMS.iter().map(ToString::to_string).collect(),
            ..ExportConfig::default()
        },
        ..Config::default()
    }
}

/// For compilers of C and C++.
fn for_c(package: &Path) -> Config {
    let preamble = fs::read_to_string(package.join("tools/preamble.h")).unwrap_or_default();
    Config {
        header: Some(preamble.trim_end().to_owned()),
        include_guard: Some("STANCHION_H".into()),
        cpp_compat: true,
        no_includes: true,
        sys_includes: vec!["stddef.h".into(), "stdint.h".into()],
        ..common()
    }
}

/// For PHP's FFI, which has no preprocessor.
fn for_php() -> Config {
    Config {
        header: Some("/* The declarations of stanchion.h for PHP's FFI. Made from the sources. */".into()),
        no_includes: true,
        documentation: false,
        ..common()
    }
}

//! Writes a file in which every event and every frame occurs, for a look with a viewer or a check with a
//! schema validator: `cargo run -p qlogs --example sample -- sample.sqlog`.

use std::fs::File;
use std::process::ExitCode;

use qlogs::Writer;

#[path = "../tests/events/mod.rs"]
mod events;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: sample FILE.sqlog");
        return ExitCode::from(2);
    };
    match File::create(path).and_then(write) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write the sample: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(file: File) -> std::io::Result<File> {
    let mut writer = Writer::new(file, &events::header())?;
    for (at, event) in events::story() {
        writer.write(at, &event);
    }
    writer.finish()
}

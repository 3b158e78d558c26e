//! The command `tidegate`: parses, and hands over to the crate that does the work.

use std::{
    env,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use h3_client::cli::GetArgs;
use h3_server::cli::ServeArgs;
use interop::{
    cli::{ExitStatus, ListArgs, RunArgs},
    play::PlayError,
    qlog_cli::QlogArgs,
    real_player::RealPlayer,
    sweep::SweepArgs,
    virtual_player::VirtualPlayer,
};

/// QUIC with selectable congestion control, and the laboratory that proves it
#[derive(Parser, Debug)]
#[command(name = "tidegate", version, about, max_term_width = 80)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(RunArgs),
    Sweep(SweepArgs),
    List(ListArgs),
    Serve(ServeArgs),
    Get(GetArgs),
    Qlog(QlogArgs),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return answer(&error),
    };
    match arguments.command {
        Command::Run(args) => run(&args).into(),
        Command::Sweep(args) => sweep(&args).into(),
        Command::List(args) => interop::cli::list(&args).into(),
        Command::Serve(args) => h3_server::cli::run(&args),
        Command::Get(args) => h3_client::cli::run(&args),
        Command::Qlog(args) => interop::qlog_cli::run(&args).into(),
    }
}

fn run(args: &RunArgs) -> ExitStatus {
    let played = if args.real {
        RealPlayer::new().map(|player| interop::cli::run(args, &player))
    } else {
        virtual_player(args.no_encryption).map(|player| interop::cli::run(args, &player))
    };
    played.unwrap_or_else(|error| {
        complain(&format!("error: {error}"));
        ExitStatus::Error
    })
}

fn sweep(args: &SweepArgs) -> ExitStatus {
    match virtual_player(args.no_encryption) {
        Ok(player) => interop::cli::sweep(args, &player),
        Err(error) => {
            complain(&format!("error: {error}"));
            ExitStatus::Error
        }
    }
}

fn virtual_player(has_no_encryption: bool) -> Result<VirtualPlayer, PlayError> {
    if has_no_encryption {
        return Ok(VirtualPlayer::without_encryption());
    }
    VirtualPlayer::new()
}

/// Help and version are printed as they are; a mistake in the command line takes one line.
fn answer(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A reader who has left is satisfied.
            let _ = error.print();
            u8::try_from(error.exit_code()).map_or(ExitStatus::Error.into(), ExitCode::from)
        }
        _ => {
            complain(&in_one_line(error));
            ExitStatus::Error.into()
        }
    }
}

/// What is wrong, the tips, and what is allowed where the message does not say so itself.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    for tip in rest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("tip: "))
    {
        line.push_str("; ");
        line.push_str(tip);
    }
    let mut program = Arguments::command();
    program.build();
    // The words that name a command, and below `qlog` one of its verbs.
    let mut command = &program;
    for word in env::args().skip(1) {
        match command.find_subcommand(word) {
            Some(inner) => command = inner,
            None => break,
        }
    }
    let allowed: Vec<String> = match (error.kind(), command.has_subcommands()) {
        (ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument, true) => command
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect(),
        (ErrorKind::UnknownArgument, false) => command
            .get_arguments()
            .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
            .collect(),
        _ => Vec::new(),
    };
    if !allowed.is_empty() {
        line.push_str("; allowed are ");
        line.push_str(&allowed.join(", "));
    }
    line
}

fn complain(line: &str) {
    // Where an error cannot be printed, the exit status still tells.
    let _ = writeln!(io::stderr(), "{line}");
}

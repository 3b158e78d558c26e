//! The command `tidegate`: parses, and hands over to the crate that does the work.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use h3_client::cli::GetArgs;
use h3_server::cli::ServeArgs;
use interop::{
    cli::{ExitStatus, ListArgs, RunArgs},
    real_player::RealPlayer,
    virtual_player::VirtualPlayer,
};

/// QUIC with selectable congestion control, and the laboratory that proves it
#[derive(Parser, Debug)]
#[command(name = "tidegate", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(RunArgs),
    List(ListArgs),
    Serve(ServeArgs),
    Get(GetArgs),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run(args) => run(&args).into(),
        Command::List(args) => interop::cli::list(&args).into(),
        Command::Serve(args) => h3_server::cli::run(&args),
        Command::Get(args) => h3_client::cli::run(&args),
    }
}

fn run(args: &RunArgs) -> ExitStatus {
    let played = if args.real {
        RealPlayer::new().map(|player| interop::cli::run(args, &player))
    } else {
        VirtualPlayer::new().map(|player| interop::cli::run(args, &player))
    };
    played.unwrap_or_else(|error| {
        eprintln!("tidegate: {error}");
        ExitStatus::Error
    })
}

// An echo server with tokio's current-thread scheduler: a task for each connection. The command
// line is that of benchmarks/echo_server.cpp; prints its port and serves for ever.

use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

struct Settings {
    port: u16,
    buffer: usize,
    mode: String,
    block: usize,
}

fn settings() -> Settings {
    let mut found = Settings { port: 0, buffer: 4096, mode: "echo".into(), block: 65536 };
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut at = 0;
    while at < words.len() {
        let value = words.get(at + 1).cloned().unwrap_or_default();
        match words[at].as_str() {
            "--port" => found.port = value.parse().expect("--port"),
            "--buffer" => found.buffer = value.parse().expect("--buffer"),
            "--block" => found.block = value.parse().expect("--block"),
            "--mode" => found.mode = value,
            // Without effect here.
            "--backend" | "--read-mode" | "--stay" => {}
            other => {
                eprintln!("unknown option: {other}");
                std::process::exit(2);
            }
        }
        at += 2;
    }
    found
}

async fn echo(mut stream: TcpStream, size: usize) -> std::io::Result<()> {
    let mut buffer = vec![0u8; size];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}

async fn source(mut stream: TcpStream, block: usize) -> std::io::Result<()> {
    let bytes = vec![b'x'; block];
    loop {
        stream.write_all(&bytes).await?;
    }
}

async fn accept_all(listener: TcpListener, how: Settings) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        if how.mode == "source" {
            tokio::spawn(source(stream, how.block));
        } else {
            tokio::spawn(echo(stream, how.buffer));
        }
    }
}

fn main() -> std::io::Result<()> {
    let how = settings();
    if how.mode != "echo" && how.mode != "source" {
        eprintln!("unknown mode: {}", how.mode);
        std::process::exit(2);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(([127, 0, 0, 1], how.port).into())?;
        let listener = socket.listen(4096)?;
        println!("{}", listener.local_addr()?.port());
        std::io::stdout().flush()?;
        accept_all(listener, how).await
    })
}

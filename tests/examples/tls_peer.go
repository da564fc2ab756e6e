// A client and a server over Go's crypto/tls, for the tests of the examples. Neither shares a line
// with OpenSSL.
package main

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

var (
	connect  = flag.String("connect", "", "the server; empty: be a server")
	name     = flag.String("name", "localhost", "of the server's certificate")
	version  = flag.String("version", "1.3", "the only version of TLS: 1.2 or 1.3")
	trusted  = flag.String("ca", "", "a file with trusted certificates; a server requires one of its clients")
	cert     = flag.String("cert", "", "a certificate of our own")
	key      = flag.String("key", "", "its key")
	alpn     = flag.String("alpn", "", "protocols: a,b")
	times    = flag.Int("times", 1, "connections of a client, one after the other")
	size     = flag.Int("size", 1<<20, "bytes that a client sends and expects back")
	versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
)

func main() {
	flag.Parse()
	config, err := configuration()
	if err == nil && *connect != "" {
		err = beClient(config)
	} else if err == nil {
		err = beServer(config)
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func configuration() (*tls.Config, error) {
	config := &tls.Config{
		MinVersion: versions[*version], MaxVersion: versions[*version], ServerName: *name,
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}
	if *alpn != "" {
		config.NextProtos = strings.Split(*alpn, ",")
	}
	if *trusted != "" {
		text, err := os.ReadFile(*trusted)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, errors.New("no certificate in " + *trusted)
		}
		config.RootCAs = pool
		config.ClientCAs = pool
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if *cert != "" {
		own, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// Sends random bytes and a close_notify, and expects the same back: Go reports an end of the stream
// only after a close_notify of the server.
func beClient(config *tls.Config) error {
	for done := 0; done < *times; done++ {
		server, err := tls.Dial("tcp", *connect, config)
		if err != nil {
			return err
		}
		sent := make([]byte, *size)
		rand.Read(sent)
		go func() {
			server.Write(sent)
			server.CloseWrite()
		}()
		received, err := io.ReadAll(server)
		if err != nil {
			return err
		}
		if !bytes.Equal(sent, received) {
			return fmt.Errorf("%d bytes came back, of %d", len(received), len(sent))
		}
		state := server.ConnectionState()
		fmt.Printf("echoed resumed=%v alpn=%s\n", state.DidResume, state.NegotiatedProtocol)
		server.Close()
	}
	return nil
}

// Sends everything back once the client has ended its side.
func beServer(config *tls.Config) error {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		return err
	}
	fmt.Printf("listening on port %d\n", listener.Addr().(*net.TCPAddr).Port)
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go serve(client.(*tls.Conn))
	}
}

func serve(client *tls.Conn) {
	defer client.Close()
	received, err := io.ReadAll(client)
	state := client.ConnectionState()
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	subject := ""
	if len(state.PeerCertificates) > 0 {
		subject = state.PeerCertificates[0].Subject.String()
	}
	fmt.Printf("served resumed=%v alpn=%s name=%s client=%s\n", state.DidResume,
		state.NegotiatedProtocol, state.ServerName, subject)
	client.Write(received)
}

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string // the socket, or a part of the error
	}{
		"defaults":       {nil, "/run/cri-docker.sock"},
		"plain_path":     {[]string{"--listen=/x.sock"}, "/x.sock"},
		"unix_address":   {[]string{"--listen=unix:///x.sock"}, "/x.sock"},
		"not_a_path":     {[]string{"--listen=tcp://1.2.3.4:5"}, `--listen: "tcp://1.2.3.4:5" is not the path of a socket`},
		"relative_path":  {[]string{"--listen=x.sock"}, "is not the path of a socket"},
		"long_path":      {[]string{"--listen=/" + strings.Repeat("x", 200)}, "longer than 107 characters"},
		"log_level":      {[]string{"--log-level=loud"}, "--log-level: "},
		"unknown_flag":   {[]string{"--no-such-flag"}, "unknown flag: --no-such-flag"},
		"extra_argument": {[]string{"serve"}, `unexpected argument "serve"`},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseFlags(test.args)
			if err == nil && o.listen != test.want {
				t.Errorf("socket %s; want %s", o.listen, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v; want %s", err, test.want)
			}
		})
	}
}

func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v; want one for root only", info.Mode(), err)
	}
	if _, err := listen(path); err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("a second server: %v; want an error", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false) // as after SIGKILL
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := listen(path)
	if err != nil {
		t.Fatalf("after a kill: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

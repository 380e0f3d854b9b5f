package browser

import (
	"bufio"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the directory of the main module.
const root = "../../.."

var buildFixture = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fixture-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "fixture")
	build := exec.Command("go", "build", "-o", program, "./test/page/fixture")
	build.Dir, build.Stderr = root, os.Stderr
	return program, build.Run()
})

// fixture is a page with simulated pods.
type fixture struct {
	t    *testing.T
	args []string
	url  string
	stop func()
}

// startFixture serves the page with simulated pods, and returns its address.
func startFixture(t *testing.T, pods int, more ...string) (url string) {
	t.Helper()
	return newFixture(t, pods, more...).url
}

func newFixture(t *testing.T, pods int, more ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, args: append([]string{"-pods", strconv.Itoa(pods)}, more...)}
	f.start()
	return f
}

// start serves on the address of before, if there is one.
func (f *fixture) start() {
	f.t.Helper()
	program, err := buildFixture()
	if err != nil {
		f.t.Fatalf("build the fixture: %v", err)
	}
	address := "127.0.0.1:0"
	if f.url != "" {
		address = strings.TrimPrefix(origin(f.url), "http://")
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	server := exec.CommandContext(ctx, program, append([]string{"-listen", address}, f.args...)...)
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		f.t.Fatalf("start the fixture: %v", err)
	}
	f.stop = sync.OnceFunc(func() {
		cancel()
		_ = server.Wait()
	})
	f.t.Cleanup(f.stop)
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		f.t.Fatalf("the fixture printed no address: %v", lines.Err())
	}
	f.url = strings.TrimSpace(lines.Text())
}

// origin is the scheme and the address of a URL.
func origin(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		panic(err)
	}
	return u.Scheme + "://" + u.Host
}

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := buildFixture(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

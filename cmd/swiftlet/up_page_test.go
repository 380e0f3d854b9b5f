package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"swiftlet/internal/page"
)

// TestUpPage runs testdata/up_page.sh, as TestUp does.
func TestUpPage(t *testing.T) {
	swiftlet := built(t, "swiftlet", "make build")
	runInBox(t, "testdata/up_page.sh", swiftlet, t.TempDir(), examples(t), testBinary(t))
}

// TestUpPageAPI is TestUpPage with an API server.
func TestUpPageAPI(t *testing.T) {
	swiftlet := built(t, "swiftlet", "make build")
	built(t, "api/swiftlet-apiserver", "make api")
	runInBox(t, "testdata/up_page.sh", swiftlet, t.TempDir(), examples(t), testBinary(t), "--api")
}

func testBinary(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// visitor is a browser with a session.
type visitor struct {
	t      *testing.T
	tls    *tls.Config
	base   *url.URL // of the page
	cookie string
	origin string
}

// TestVisitor uses the page as a browser does. up_page.sh runs it, with the link in the environment.
func TestVisitor(t *testing.T) {
	link := os.Getenv("SWIFTLET_TEST_LINK")
	if link == "" {
		return
	}
	v := visit(t, link, os.Getenv("SWIFTLET_TEST_CA"))
	name := os.Getenv("SWIFTLET_TEST_POD")
	v.seePods(name)
	v.seePod(name)
	v.seeLog(name)
	v.writeSecrets(os.Getenv("SWIFTLET_TEST_SECRETS"))
	if code := v.useTerminal(name, v.origin); code != http.StatusSwitchingProtocols {
		t.Errorf("terminal: %d", code)
	}
	for _, origin := range []string{"https://evil.example", "http://127.0.0.1:8080", ""} {
		if code := v.useTerminal(name, origin); code != http.StatusForbidden {
			t.Errorf("terminal for origin %q: %d, want 403", origin, code)
		}
	}
}

func visit(t *testing.T, link, caFile string) visitor {
	t.Helper()
	pem, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	v := visitor{t: t, tls: &tls.Config{RootCAs: roots}}
	if v.base, err = url.Parse(link); err != nil {
		t.Fatal(err)
	}
	v.origin = "https://" + v.base.Host
	response := v.get(link)
	response.Body.Close()
	_, target, found := strings.Cut(response.Header.Get("Refresh"), "url=")
	if !found || len(response.Cookies()) != 1 {
		t.Fatalf("log in: %s %v", response.Status, response.Header)
	}
	v.cookie = response.Cookies()[0].Name + "=" + response.Cookies()[0].Value
	v.base = v.url(target)
	return v
}

func (v visitor) url(reference string) *url.URL {
	v.t.Helper()
	u, err := v.base.Parse(reference)
	if err != nil {
		v.t.Fatal(err)
	}
	return u
}

func (v visitor) get(reference string) *http.Response {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.url(reference).String(), nil)
	if err != nil {
		v.t.Fatal(err)
	}
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.Header.Set("Cookie", v.cookie)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: v.tls.Clone(), ForceAttemptHTTP2: true}}
	response, err := client.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		v.t.Fatalf("GET %s: %s", reference, response.Status)
	}
	return response
}

// writeSecrets writes the key and the cookie of the session to a file, a line each, for up_page.sh to search for.
func (v visitor) writeSecrets(file string) {
	v.t.Helper()
	key, _, _ := strings.Cut(strings.TrimPrefix(v.base.Path, "/page/"), "/")
	_, cookie, _ := strings.Cut(v.cookie, "=")
	if err := os.WriteFile(file, []byte(key+"\n"+cookie+"\n"), 0o600); err != nil {
		v.t.Error(err)
	}
}

// seePods reads the stream until the pod is up, another one says why it is not, and usage is known.
func (v visitor) seePods(name string) {
	v.t.Helper()
	response := v.get("api/stream")
	defer response.Body.Close()
	defer time.AfterFunc(30*time.Second, func() { response.Body.Close() }).Stop()
	up, explained, used := false, false, false
	event := ""
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if of, found := strings.CutPrefix(lines.Text(), "event: "); found {
			event = of
		}
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var rows []page.PodRow
		switch event {
		case "pods":
			v.decode(data, &rows)
		case "pod":
			rows = make([]page.PodRow, 1)
			v.decode(data, &rows[0])
		case "usage":
			used = true
		}
		for _, r := range rows {
			up = up || r.Name == name && r.Up && r.Ready == "1/1" && r.Phase == "Running"
			explained = explained || strings.HasPrefix(r.Name, "broken") && strings.HasSuffix(r.Sentence, "; fix spec.containers[0].imagePullPolicy")
		}
		if up && explained && used {
			return
		}
	}
	v.t.Errorf("the stream ended: %v; pod up %t, other pod explained %t, usage %t", lines.Err(), up, explained, used)
}

func (v visitor) decode(data string, into any) {
	v.t.Helper()
	if err := json.Unmarshal([]byte(data), into); err != nil {
		v.t.Errorf("%v: %s", err, data)
	}
}

func (v visitor) seePod(name string) {
	v.t.Helper()
	var detail page.PodDetail
	v.decode(v.read("api/pods/default/"+name), &detail)
	if detail.Report == nil || len(detail.Report.Steps) < 5 || !strings.Contains(detail.YAML, "name: "+name+"\n") || len(detail.Events) < 2 || len(detail.Containers) != 1 {
		v.t.Errorf("the pod is %+v", detail)
	}
	var history page.NodeHistory
	v.decode(v.read("api/history"), &history)
	if last := len(history.Node.T) - 1; last < 1 || history.Node.Memory[last] == nil && history.Node.Memory[last-1] == nil {
		v.t.Errorf("history has no memory: %d points", last+1)
	}
	if html := v.read(""); !strings.Contains(html, "assets/") {
		v.t.Errorf("index is %s", html)
	}
}

func (v visitor) read(reference string) string {
	v.t.Helper()
	response := v.get(reference)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return string(text)
}

// seeLog follows the log until its first line. The pod logs its readiness probes.
func (v visitor) seeLog(name string) {
	v.t.Helper()
	response := v.get("../containerLogs/default/" + name + "/server?follow=true&tailLines=10")
	defer response.Body.Close()
	defer time.AfterFunc(30*time.Second, func() { response.Body.Close() }).Stop()
	if lines := bufio.NewScanner(response.Body); !lines.Scan() || lines.Text() == "" {
		v.t.Errorf("the log has no line: %v", lines.Err())
	}
}

// useTerminal runs a command and waits for its output. It returns the status of the WebSocket.
func (v visitor) useTerminal(name, origin string) (code int) {
	v.t.Helper()
	to := v.url("../exec/default/" + name + "/server?command=/example&command=primes&command=10&output=1&error=1&input=1&tty=1")
	to.Scheme = "wss"
	header := http.Header{"Cookie": {v.cookie}}
	if origin != "" {
		header.Set("Origin", origin)
	}
	dialer := websocket.Dialer{TLSClientConfig: v.tls.Clone(), Subprotocols: []string{"v5.channel.k8s.io"}, HandshakeTimeout: 30 * time.Second}
	conn, response, err := dialer.DialContext(v.t.Context(), to.String(), header)
	if response == nil {
		v.t.Fatal(err)
	}
	if err != nil {
		return response.StatusCode
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	output := ""
	for !strings.Contains(output, "primes below 10") {
		_, message, err := conn.ReadMessage()
		if err != nil {
			v.t.Errorf("terminal: %v, output %q", err, output)
			break
		}
		if len(message) > 1 && message[0] == 1 {
			output += string(message[1:])
		}
	}
	return response.StatusCode
}

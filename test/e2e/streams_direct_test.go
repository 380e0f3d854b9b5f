package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"swiftlet/test/bed"
)

// nodeConfig is a client configuration for a node's own API, as an administrator.
func nodeConfig(node *bed.Box) *rest.Config {
	config := rest.CopyConfig(cluster.ControlPlane.Config)
	config.Host = fmt.Sprintf("https://%s:10250", node.Address())
	return config
}

// requestNode sends a request to a node's own API.
func requestNode(t *testing.T, node *bed.Box, method, path string) (int, string) {
	t.Helper()
	config := nodeConfig(node)
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestNodeAPI calls the node's own API directly.
func TestNodeAPI(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, sleeper("target", node.Name()))
	in := "/" + space + "/target/c"
	for request, want := range map[string]struct {
		code int
		body string
	}{
		"GET /containerLogs" + in:                      {200, ""},
		"GET /containerLogs" + in + "?tailLines=x":     {400, `{"message": "Unable to decode query."}`},
		"GET /containerLogs" + in + "?tailLines=-1":    {422, `{"message": "Invalid request."}`},
		"GET /containerLogs" + in + "?stream=Stdout":   {400, `unable to return the given log stream: "Stdout". Please enable PodLogsQuerySplitStreams feature gate in kubelet`},
		"GET /containerLogs" + in + "x":                {404, `container "cx" not found in pod "target"`},
		"GET /containerLogs/none/target/c":             {404, `pod "target" does not exist`},
		"GET /containerLogs" + in + "?previous=1":      {400, `previous terminated container "c" in pod "target" not found`},
		"POST /exec" + in:                              {400, "you must specify at least 1 of stdin, stdout, stderr"},
		"POST /exec" + in + "x?output=1":               {500, `container not found ("cx")`},
		"POST /exec/none/target/c?output=1":            {404, "pod does not exist"},
		"POST /exec" + in + "?output=1&command=true":   {500, "Upgrade request required\n"},
		"POST /attach" + in + "x?output=1":             {500, fmt.Sprintf("container cx not found in pod target_%s", space)},
		"POST /portForward/none/target":                {404, "pod does not exist"},
		"POST /portForward/" + space + "/target/other": {404, "pod not found"},
		"POST /run" + in + "?cmd=echo+hello":           {200, "hello\n"},
		"POST /run" + in + "x?cmd=true":                {500, `container not found ("cx")`},
		"POST /run" + in + "?cmd=false":                {500, "command 'false' exited with 1: "},
		"GET /debug/flags/v":                           {406, "unsupported http method\n"},
		"PUT /debug/flags/v":                           {400, "strconv.ParseUint: parsing \"\": invalid syntax\n"},
		"HEAD /containerLogs" + in:                     {405, ""},
		"PUT /exec" + in:                               {405, "405: Method Not Allowed"},
		"POST /checkpoint" + in + "x":                  {404, "container cx does not exist"},
		"POST /checkpoint/none/target/c":               {404, "pod does not exist"},
		"POST /checkpoint" + in + "?timeout=x":         {404, "cannot parse value of timeout parameter"},
	} {
		method, path, _ := strings.Cut(request, " ")
		if code, body := requestNode(t, node, method, path); code != want.code || body != want.body {
			t.Errorf("%s: %d %q, want %d %q", request, code, body, want.code, want.body)
		}
	}
}

// TestNodeStreams runs a command directly on the node over each streaming protocol.
func TestNodeStreams(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	startPod(t, space, sleeper("target", node.Name()))
	config := nodeConfig(node)
	query := url.Values{"command": {"sh", "-c", "cat; exit 9"}, "input": {"1"}, "output": {"1"}, "error": {"1"}}
	location, err := url.Parse(fmt.Sprintf("%s/exec/%s/target/c?%s", config.Host, space, query.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	overSPDY, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, location)
	if err != nil {
		t.Fatal(err)
	}
	overWebSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, location.String())
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789abcdef", 1<<16)
	for name, process := range map[string]remotecommand.Executor{"SPDY": overSPDY, "WebSocket": overWebSocket} {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		var out, stderr bytes.Buffer
		err := process.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader(text), Stdout: &out, Stderr: &stderr})
		cancel()
		if err == nil || !strings.Contains(err.Error(), "exit code 9") || out.String() != text {
			t.Errorf("%s: %d of %d bytes, %v, want exit code 9: %s", name, out.Len(), len(text), err, stderr.String())
		}
	}
}

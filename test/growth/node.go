package main

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/fakeapi"
	"swiftlet/test/fakecri"
	"swiftlet/test/pdeathsig"
	"swiftlet/test/scale/hollow"
)

// node is the agent's process and what it works with.
type node struct {
	dir      string
	profiles string
	page     bool
	api      *fakeapi.Server
	server   *httptest.Server
	runtime  *fakecri.Server
	stdin    io.WriteCloser
	answers  *bufio.Scanner
	exited   <-chan error
	// patched receives the name of each pod whose status the agent has written.
	patched chan string
	started int // pods of the settled set
}

// startNode starts everything, and returns when the agent answers.
func startNode(ctx context.Context, profiles string, page bool) (_ *node, err error) {
	n := &node{profiles: profiles, page: page, api: fakeapi.New(), patched: make(chan string, 10000)}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	// Sockets are among the files, and their paths are limited to 107 characters.
	if n.dir, err = os.MkdirTemp("", "growth"); err != nil {
		return nil, err
	}
	if profiles != "" {
		if err := os.MkdirAll(profiles, 0o755); err != nil {
			return nil, err
		}
	}
	n.server = httptest.NewUnstartedServer(serveAPI(n.api))
	n.server.EnableHTTP2 = true
	n.server.StartTLS()
	if err := n.writeFiles(); err != nil {
		return nil, err
	}
	if err := n.addObjects(); err != nil {
		return nil, err
	}
	n.api.SetInterceptor(n.intercept)
	if n.runtime, err = hollow.Files(n.dir).StartRuntime(); err != nil {
		return nil, err
	}
	n.runtime.OnStart(func(c *runtimeapi.ContainerStatus) (int32, bool) {
		_ = os.WriteFile(c.LogPath, nil, 0o600) // without it, the agent waits for it
		return 0, false
	})
	if err := n.startAgent(ctx); err != nil {
		return nil, err
	}
	_, err = n.ask("use")
	return n, err
}

func (n *node) startAgent(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"-agent", n.dir}
	if n.page {
		args = append(args, "-page")
	}
	cmd := exec.CommandContext(ctx, self, args...)
	log, err := os.Create(filepath.Join(n.dir, "agent.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr = log
	if n.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	n.answers = bufio.NewScanner(stdout)
	n.exited, err = pdeathsig.Start(cmd)
	return err
}

func (n *node) close() {
	if n.stdin != nil {
		_ = n.stdin.Close() // the agent ends
		<-n.exited
	}
	if n.runtime != nil {
		n.runtime.Stop()
	}
	if n.server != nil {
		n.server.CloseClientConnections()
		n.server.Close()
	}
	_ = os.RemoveAll(n.dir)
}

func (n *node) writeFiles() error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("node", nil, nil)
	if err != nil {
		return err
	}
	serving := hollow.Serving{Certificate: filepath.Join(n.dir, "serving.crt"), Key: filepath.Join(n.dir, "serving.key")}
	if err := errors.Join(os.WriteFile(serving.Certificate, certificate, 0o600), os.WriteFile(serving.Key, key, 0o600)); err != nil {
		return err
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.server.Certificate().Raw})
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: n.server.URL, CertificateAuthorityData: authority}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "growth"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	})
	if err != nil {
		return err
	}
	return hollow.Files(n.dir).Write(kubeconfig, n.address(), serving)
}

// address is where the agent serves, at its usual port. It is made from the port of the API server, so that
// two runs on one machine have addresses of their own.
func (n *node) address() string {
	port := n.server.Listener.Addr().(*net.TCPAddr).Port
	return fmt.Sprintf("127.211.%d.%d", port>>8, port&0xff)
}

// addObjects adds what every pod refers to.
func (n *node) addObjects() error {
	err := fakeapi.Edit(n.api, v1.NamespaceDefault, "default", func(*v1.ServiceAccount) error { return nil })
	for _, name := range []string{"kube-root-ca.crt", "settings"} {
		err = errors.Join(err, fakeapi.Edit(n.api, v1.NamespaceDefault, name, func(c *v1.ConfigMap) error {
			c.Data = map[string]string{"ca.crt": "certificate", "key": "value"}
			return nil
		}))
	}
	return err
}

// intercept notices writes of status.
func (n *node) intercept(_ context.Context, call fakeapi.Call, act func() (*http.Response, error)) (*http.Response, error) {
	answer, err := act()
	if call.Verb == "patch" && call.Resource == "pods" && call.Subresource == "status" {
		n.patched <- call.Name
	}
	return answer, err
}

// ask sends a command to the agent's process and returns what it has used.
func (n *node) ask(command string) (answer use, err error) {
	if _, err := fmt.Fprintln(n.stdin, command); err != nil {
		return answer, err
	}
	if !n.answers.Scan() {
		return answer, fmt.Errorf("the agent ended: %s", n.lastLog())
	}
	return answer, json.Unmarshal(n.answers.Bytes(), &answer)
}

func (n *node) lastLog() string {
	text, err := os.ReadFile(filepath.Join(n.dir, "agent.log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// profile asks for a profile, if profiles are wanted.
func (n *node) profile(kind, name string) error {
	if n.profiles == "" {
		return nil
	}
	path := ""
	if name != "" {
		path = filepath.Join(n.profiles, name)
	}
	_, err := n.ask(kind + " " + path)
	return err
}

// pause waits, unless the agent ends.
func (n *node) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-n.exited:
		return fmt.Errorf("the agent ended: %s", n.lastLog())
	case <-ctx.Done():
		return ctx.Err()
	}
}

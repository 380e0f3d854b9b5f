package standalone

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"swiftlet/internal/boundedio"
)

// apiPrograms are the programs in the directory APIConfig.Programs. They run as root.
var apiPrograms = []string{apiServerProgram, "swiftlet-dns", "kubectl"}

const apiServerProgram = "swiftlet-apiserver"

const (
	// apiGrace is how long the API server may take to exit on SIGTERM. Nothing is lost if it is killed.
	apiGrace = 10 * time.Second
	// apiStartLimit is long enough to replay the log of a store on a slow disk.
	apiStartLimit = 2 * time.Minute
	// apiRequestLimit is the deadline of one request for readiness.
	apiRequestLimit = 5 * time.Second
	// maxReport is more than the API server writes at a time.
	maxReport = 1 << 20
)

// APIConfig holds the settings of the node's API server.
type APIConfig struct {
	Programs string // directory of swiftlet-apiserver, swiftlet-dns and kubectl
	Port     int    // on loopback
	// KubeconfigGroup is the group whose members may read the administrator's kubeconfig. Without it only
	// root may.
	KubeconfigGroup string
}

func (c APIConfig) program(name string) string { return filepath.Join(c.Programs, name) }

func (c APIConfig) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port)) }

// apiServer keeps the API server running. The process does not outlive this one: what it has acknowledged is
// on disk. A nil apiServer is one that the user does not want.
type apiServer struct {
	child
	began   time.Time
	failed  chan struct{} // is closed when the program has exited for the first time
	cancel  context.CancelFunc
	stopped chan struct{} // is closed when the program has stopped
	stopErr error
}

// startAPI starts the API server in the background. It reports problems with manifests to display.
func (s *Supervisor) startAPI(display *Display) (*apiServer, error) {
	if s.cfg.API == nil {
		return nil, nil
	}
	s.progress("starting the API server")
	p := s.cfg.Paths
	reports, stdout, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start API server: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &apiServer{began: s.deps.Clock.Now(), failed: make(chan struct{}), cancel: cancel, stopped: make(chan struct{})}
	a.child = child{
		name: "API server", logFile: p.apiLog(), log: s.deps.Log, clock: s.deps.Clock,
		command: []string{
			s.cfg.API.program(apiServerProgram), "--data-dir=" + p.apiData(), "--pki-dir=" + filepath.Dir(p.pki("x")),
			"--node-name=" + s.cfg.NodeName, "--address=" + s.cfg.API.address(),
			"--kubeconfig=" + p.Kubeconfig(), "--kubeconfig-group=" + s.cfg.API.KubeconfigGroup,
			"--pod-address=" + s.cfg.bridgeAddress(), "--service-cidr=" + serviceCIDR.String(),
			"--volumes-dir=" + p.volumes(), "--manifests=" + s.cfg.Manifests,
		},
		stdout: stdout,
		system: syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
		exited: sync.OnceFunc(func() { close(a.failed) }),
	}
	if s.cfg.proxyServices {
		a.command = append(a.command, "--pod-cidr="+s.cfg.PodCIDR.String())
	}
	var readers sync.WaitGroup
	readers.Go(func() { limitLog(ctx, a.logFile, maxLogSize, s.deps.Clock, s.deps.Log) })
	readers.Go(func() { s.readProblems(reports, display) })
	go func() {
		defer close(a.stopped)
		// The kernel kills the program when the thread that started it ends. The thread ends with this goroutine.
		runtime.LockOSThread()
		_ = a.run(ctx) // returns only when its context is done
		a.stopErr = a.child.stop(apiGrace)
		stdout.Close()
		readers.Wait()
	}()
	return a, nil
}

// readProblems reads what the API server writes about manifests until it has ended.
func (s *Supervisor) readProblems(reports io.ReadCloser, display *Display) {
	defer reports.Close()
	shown := map[Problem]bool{}
	lines := bufio.NewScanner(reports)
	lines.Buffer(nil, maxReport)
	for lines.Scan() {
		var report struct{ Problems []Problem }
		if err := json.Unmarshal(lines.Bytes(), &report); err != nil {
			s.deps.Log.Error("manifests: read of problems failed", "err", err)
			continue
		}
		current := map[Problem]bool{}
		for _, p := range report.Problems {
			current[p] = true
			if !shown[p] {
				s.deps.Log.Warn("manifests: not applied", "file", p.File, "line", p.Line, "object", p.Object, "err", p.Message)
			}
		}
		shown = current
		display.ShowProblems(report.Problems)
	}
	if err := lines.Err(); err != nil {
		s.deps.Log.Error("manifests: read of problems failed", "err", err)
		_, _ = io.Copy(io.Discard, reports) // or the API server would wait for a reader
	}
}

// stop ends the API server. It may be called again.
func (a *apiServer) stop() error {
	if a == nil {
		return nil
	}
	a.cancel()
	<-a.stopped
	err := a.stopErr
	a.stopErr = nil // reported once
	return err
}

// awaitAPI returns once the API server is ready. If the first process exits, it is not waited for further:
// the next one would fail, too.
func (s *Supervisor) awaitAPI(ctx context.Context, a *apiServer) error {
	if a == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-a.failed:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := s.poll(ctx, apiStartLimit, "wait for the API server (log: "+a.logFile+")", s.apiReady)
	select {
	case <-a.failed:
		return fmt.Errorf("start API server: it exited: %s (log: %s)", lastLine(a.logFile), a.logFile)
	default:
	}
	if err == nil {
		s.progress("the API is ready after %s: export KUBECONFIG=%s", s.since(a.began), quote(s.cfg.Paths.Kubeconfig()))
	}
	return err
}

// apiReady asks the API server whether it is ready. The certificates exist only after its start.
func (s *Supervisor) apiReady(ctx context.Context) error {
	p := s.cfg.Paths
	ca, err := boundedio.ReadFile(p.pki("ca.crt"), boundedio.Small)
	if err != nil {
		return fmt.Errorf("ask for readiness: %w", err)
	}
	client, err := tls.LoadX509KeyPair(p.pki("admin.crt"), p.pki("admin.key"))
	if err != nil {
		return fmt.Errorf("ask for readiness: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{client}}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, apiRequestLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.cfg.API.address()+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("ask for readiness: %w", err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask for readiness: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New("not ready: " + answer.Status)
	}
	return nil
}

// lastLine returns the last line of a log, up to its last 4 KiB.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if _, err := f.Seek(-4<<10, io.SeekEnd); err != nil { // it is shorter
		_, _ = f.Seek(0, io.SeekStart)
	}
	end, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil {
		return err.Error()
	}
	end = bytes.TrimSpace(end)
	return string(end[bytes.LastIndexByte(end, '\n')+1:])
}

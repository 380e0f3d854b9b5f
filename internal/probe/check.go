package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"swiftlet/internal/clip"
	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// Execer runs a command in a container.
type Execer interface {
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
}

// Checks runs the four kinds of probes: exec, HTTP, TCP and gRPC.
type Checks struct {
	exec  Execer
	http  *http.Client
	http2 *http.Client // speaks HTTP/2 without TLS
}

// NewChecks returns Checks that run commands with exec.
func NewChecks(exec Execer) *Checks {
	return &Checks{exec: exec, http: newHTTPClient(nil), http2: newHTTPClient(unencryptedHTTP2())}
}

// Check runs a probe once.
func (c *Checks) Check(ctx context.Context, t Target) Outcome {
	h := t.Probe.ProbeHandler
	switch {
	case h.Exec != nil:
		return c.checkExec(ctx, t)
	case h.HTTPGet != nil:
		return c.checkHTTP(ctx, t)
	case h.TCPSocket != nil:
		return checkTCP(ctx, t)
	case h.GRPC != nil:
		return checkGRPC(ctx, t)
	}
	return errored(fmt.Errorf("missing probe handler for %s:%s", pod.RefOf(t.Pod), t.Container.Name))
}

func passed(output string) Outcome { return outcome(pod.Passed, why.Unclassified, output) }
func failed(output string) Outcome { return outcome(pod.Failed, why.ProbeFailed, output) }
func errored(err error) Outcome    { return outcome(pod.ProbeUnknown, why.ProbeError, err.Error()) }

// unreachable is a failure of the connection.
func unreachable(ctx context.Context, err error) Outcome {
	class := why.ProbeFailed
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		class = why.ProbeRefused
	case ctx.Err() != nil:
		class = why.ProbeNoReply
	}
	return outcome(pod.Failed, class, err.Error())
}

// outcome limits the output, which the pod chooses.
func outcome(result pod.Result, class why.Class, output string) Outcome {
	return Outcome{Result: result, Class: class, Output: clip.Text(output, clip.Output)}
}

// portOf resolves a port number or the name of one of the container's ports.
func portOf(p intstr.IntOrString, c *v1.Container) (int, error) {
	port := p.IntValue()
	if p.Type == intstr.String {
		named := false
		for _, declared := range c.Ports {
			if declared.Name == p.StrVal {
				port, named = int(declared.ContainerPort), true
			}
		}
		if number, err := strconv.Atoi(p.StrVal); !named && err == nil {
			port = number
		}
	}
	if port < 1 || port > 65535 {
		return 0, fmt.Errorf("invalid port number: %s", p.String())
	}
	return port, nil
}

// addressOf is the probe's host and port; the host defaults to the pod IP.
func addressOf(host string, port int, t Target) string {
	if host == "" {
		host = t.PodIP
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

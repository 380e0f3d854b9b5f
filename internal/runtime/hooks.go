package runtime

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"swiftlet/internal/clip"
	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// maxHookText limits each text that a pod puts into the error of a hook, so that all of them fit in a
// status message.
const maxHookText = 1024

// maxHookHeaders limits the headers of a response, which a pod may send to all its hooks at the same time.
const maxHookHeaders = 64 << 10

// hookCall is one run of a lifecycle hook.
type hookCall struct {
	pod       *v1.Pod
	container *v1.Container
	id        string
	podIPs    []string
	hook      *v1.LifecycleHandler
}

// runHook runs a hook until it ends or ctx does. Its errors have the reference kubelet's text,
// because pod status shows them, but no more of it than a status may have.
func (r *Runtime) runHook(ctx context.Context, call hookCall) error {
	kind, what, output, err := "", "", "", error(nil)
	switch hook := call.hook; {
	case hook.Exec != nil:
		kind, what = "Exec", clip.Text(fmt.Sprint(hook.Exec.Command), maxHookText)
		output, err = r.execHook(ctx, call)
	case hook.HTTPGet != nil:
		kind, what, err = "HTTP", hook.HTTPGet.Path, r.httpHook(ctx, call)
	case hook.Sleep != nil:
		kind, what, err = "Sleep", strconv.FormatInt(hook.Sleep.Seconds, 10), r.sleepHook(ctx, hook.Sleep.Seconds)
	default:
		err = fmt.Errorf("invalid handler: %v", hook)
		return &shownError{message: clip.Text("Cannot run handler: "+err.Error(), clip.Message), err: err}
	}
	if err == nil {
		return nil
	}
	message := fmt.Sprintf("%s lifecycle hook (%s) for Container %q in Pod %q failed - error: %s%s",
		kind, what, call.container.Name, pod.RefOf(call.pod), cri.Text(err), output)
	return &shownError{message: clip.Text(message, clip.Message), err: err}
}

// execHook sets no timeout: ctx ends when the hook's time is over, and the container is stopped.
func (r *Runtime) execHook(ctx context.Context, call hookCall) (output string, err error) {
	command := call.hook.Exec.Command
	result, err := r.deps.CRI.ExecSync(ctx, call.id, command, 0)
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("command '%s' exited with %d: %s", clip.Text(strings.Join(command, " "), maxHookText), result.ExitCode, clip.Text(result.Stderr, maxHookText))
	}
	return fmt.Sprintf(", message: %q", clip.Text(result.Stdout, maxHookText)+clip.Text(result.Stderr, maxHookText)), err
}

func (r *Runtime) sleepHook(ctx context.Context, seconds int64) error {
	timer := r.deps.Clock.NewTimer(pod.Seconds(seconds))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		r.deps.Meters.SleepTerminated.Inc()
		return errors.New("container terminated before sleep hook finished")
	}
}

// httpHook sends one request. Any response is success. If the server turns out not to speak
// TLS, it sends the request again over HTTP.
func (r *Runtime) httpHook(ctx context.Context, call hookCall) error {
	request, err := hookRequest(ctx, call)
	if err != nil {
		return err
	}
	err = r.send(request)
	if err == nil || !strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return err
	}
	request = request.Clone(ctx)
	request.URL.Scheme = "http"
	request.Header.Del("Authorization")
	if r.send(request) != nil {
		return err
	}
	r.deps.Meters.HookFallback.Inc()
	r.deps.Events.Eventf(pod.EventRef(call.pod, ""), v1.EventTypeWarning, "LifecycleHTTPFallback",
		"request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", request.URL.Host)
	return nil
}

func (r *Runtime) send(request *http.Request) error {
	response, err := r.deps.HTTP.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func hookRequest(ctx context.Context, call hookCall) (*http.Request, error) {
	get := call.hook.HTTPGet
	host := cmp.Or(get.Host, first(call.podIPs))
	if host == "" {
		return nil, errors.New("failed to find networking container: the pod has no address")
	}
	port, err := portNumber(get.Port, call.container)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(get.Path)
	if err != nil {
		target = &url.URL{Path: get.Path} // unescaped
	}
	target.Scheme = cmp.Or(strings.ToLower(string(get.Scheme)), "http")
	target.Host = net.JoinHostPort(host, strconv.Itoa(port))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range get.HTTPHeaders {
		request.Header.Add(h.Name, h.Value)
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "kube-lifecycle/1.37")
	}
	if _, given := request.Header["Accept"]; !given {
		request.Header.Set("Accept", "*/*")
	}
	request.Host = request.Header.Get("Host")
	return request, nil
}

func portNumber(port intstr.IntOrString, c *v1.Container) (int, error) {
	n := port.IntValue()
	if port.Type == intstr.String {
		n = -1
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				n = int(p.ContainerPort)
			}
		}
		if n < 0 {
			return 0, fmt.Errorf("port %q not found", port.StrVal)
		}
	}
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", n)
	}
	return n, nil
}

// newHookClient returns the client for lifecycle hooks. It must never have credentials: pods
// choose where its requests go. It follows no redirect to another host.
func newHookClient() *http.Client {
	return &http.Client{
		// Hooks are rare: an idle connection would only outlive its pod.
		Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxResponseHeaderBytes: maxHookHeaders,
		},
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			if to.URL.Hostname() != via[0].URL.Hostname() || len(via) >= 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

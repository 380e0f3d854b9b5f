package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/clip"
	"swiftlet/internal/standalone"
	"swiftlet/internal/why"
)

// reachFlags say how to reach a kubelet.
type reachFlags struct {
	root                string
	port                int
	kubeconfig, context string
	cluster             bool
	server              string
	tls                 rest.TLSClientConfig
}

func (f *reachFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.root, "root", "/var/lib/swiftlet", "--root of \"swiftlet up\" on this machine")
	flags.IntVar(&f.port, "port", 10250, "--port of \"swiftlet up\" on this machine")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster; the default is $KUBECONFIG or ~/.kube/config")
	flags.StringVar(&f.context, "context", "", "context of the kubeconfig file")
	flags.BoolVar(&f.cluster, "cluster", false, "ask the API server, also where \"swiftlet up\" runs")
	flags.StringVar(&f.server, "server", "", "URL of a kubelet, such as https://10.0.0.5:10250")
	flags.StringVar(&f.tls.CAFile, "certificate-authority", "", "with --server: CA of its certificate")
	flags.StringVar(&f.tls.CertFile, "client-certificate", "", "with --server: client certificate")
	flags.StringVar(&f.tls.KeyFile, "client-key", "", "with --server: key of the client certificate")
}

// agentAPI reads from the HTTPS API of a kubelet, itself or through the API server.
type agentAPI struct {
	http *http.Client
	base *url.URL
	// proxied: base is the API server's.
	proxied bool
	// namespace is the default one.
	namespace string
	// up: the kubelet is that of "swiftlet up" on this machine.
	up bool
}

// maxReport limits what is read of a response.
const maxReport = 16 << 20

// requestTimeout limits a request.
const requestTimeout = 30 * time.Second

// connect finds out how to reach the kubelet. It sends nothing.
func (f reachFlags) connect() (*agentAPI, error) {
	if f.server != "" {
		return newAgentAPI(&rest.Config{Host: f.server, TLSClientConfig: f.tls}, v1.NamespaceDefault, false)
	}
	pki := func(file string) string { return filepath.Join(f.root, "pki", file) }
	_, err := os.Stat(pki("admin.crt"))
	if local := !f.cluster && f.kubeconfig == "" && f.context == ""; local && err == nil {
		tls := rest.TLSClientConfig{CAFile: pki("ca.crt"), CertFile: pki("admin.crt"), KeyFile: pki("admin.key")}
		a, err := newAgentAPI(&rest.Config{Host: f.address(), TLSClientConfig: tls}, v1.NamespaceDefault, false)
		if err == nil {
			a.up = true
		}
		return a, err
	} else if local && errors.Is(err, fs.ErrPermission) {
		return f.connectAsMember()
	} else if local && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read certificate of \"swiftlet up\": %w", err)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("find a kubelet to ask: \"swiftlet up\" has not run with --root %s, and there is no kubeconfig (set --kubeconfig, or --server)", f.root)
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return newAgentAPI(config, namespace, true)
}

// connectAsMember reaches the kubelet of "swiftlet up" with the certificate in the kubeconfig, for who may read that
// but not the keys of root.
func (f reachFlags) connectAsMember() (*agentAPI, error) {
	file := filepath.Join(f.root, standalone.KubeconfigName)
	if err := readable(file); err != nil {
		return nil, fmt.Errorf("reach \"swiftlet up\": only root and members of --kubeconfig-group may do this: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return newAgentAPI(&rest.Config{Host: f.address(), TLSClientConfig: config.TLSClientConfig}, v1.NamespaceDefault, false)
}

// address is that of the kubelet of "swiftlet up".
func (f reachFlags) address() string { return fmt.Sprintf("https://127.0.0.1:%d", f.port) }

func newAgentAPI(config *rest.Config, namespace string, proxied bool) (*agentAPI, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up client of %s: %w", config.Host, err)
	}
	client.Timeout = requestTimeout
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read server address: %w", err)
	}
	return &agentAPI{http: client, base: base, proxied: proxied, namespace: namespace}, nil
}

// notFoundError is for a pod or node that does not exist.
type notFoundError struct{ what string }

func (e *notFoundError) Error() string { return e.what + " not found" }

// whyPod reads the report about a pod.
func (a *agentAPI) whyPod(ctx context.Context, namespace, name string) (report, error) {
	of := "/why/" + namespace + "/" + name
	if a.proxied {
		var p v1.Pod
		if err := a.read(ctx, "pod "+namespace+"/"+name, "/api/v1/namespaces/"+namespace+"/pods/"+name, &p); err != nil {
			return nil, err
		}
		if p.Spec.NodeName == "" {
			return why.Unscheduled(&p, time.Now()), nil
		}
		of = "/api/v1/nodes/" + p.Spec.NodeName + "/proxy" + of
	}
	var r why.Report
	err := a.read(ctx, "pod "+namespace+"/"+name+" on its node", of, &r)
	return r, err
}

// whyNode reads the report about a node.
func (a *agentAPI) whyNode(ctx context.Context, node string) (report, error) {
	path := "/why"
	switch {
	case a.proxied && node == "":
		return nil, errors.New("read arguments: name the node, as in \"why node NODE\"")
	case a.proxied:
		path = "/api/v1/nodes/" + node + "/proxy/why"
	}
	var r why.NodeReport
	err := a.read(ctx, "node "+node, path, &r)
	return r, err
}

// read decodes the JSON at a path into an object.
func (a *agentAPI) read(ctx context.Context, what, path string, into any) error {
	text, err := a.get(ctx, what, path, "output=json", "application/json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: the response is no report; is the kubelet Swiftlet? %w", what, err)
	}
	return nil
}

// get reads what is at a path.
func (a *agentAPI) get(ctx context.Context, what, path, query, accept string) ([]byte, error) {
	return a.send(ctx, http.MethodGet, what, path, query, accept)
}

// send reads the response to a request without a body.
func (a *agentAPI) send(ctx context.Context, method, what, path, query, accept string) ([]byte, error) {
	target := a.base.JoinPath(path)
	target.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	request.Header.Set("Accept", accept)
	response, err := a.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	defer response.Body.Close()
	text, err := boundedio.ReadAll(response.Body, target.Path, maxReport)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", what, err)
	case response.StatusCode == http.StatusNotFound:
		return nil, &notFoundError{what}
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("read %s: %d %s: %q", what, response.StatusCode, http.StatusText(response.StatusCode), clip.Text(text, clip.Event))
	}
	return text, nil
}

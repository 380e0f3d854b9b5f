package bed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"
)

// KubeletKind is the kubelet that a node runs: Swiftlet, the reference kubelet, or the reference kubelet
// of an earlier release, such as "v1.36.3". test/reference has a module for each release.
type KubeletKind string

const (
	Ours      KubeletKind = "ours"
	Reference KubeletKind = "reference"
)

// KubeletOptions are the options of one kubelet start.
type KubeletOptions struct {
	Kind   KubeletKind
	Flags  []string
	Config string // YAML merged into the configuration file, field by field
	Calls  string // file to record its CRI calls in, as JSON lines; empty: not recorded
}

// nodeCAFile is the certificate of the bed's authority, as a path of a node.
const nodeCAFile = "/etc/kubernetes/pki/ca.crt"

// kubeletConfig is the default configuration of both kinds. Image garbage collection is off, as
// images cannot be pulled again, and the host's disk usage must not cause evictions.
const kubeletConfig = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://` + containerdSocket + `
cgroupDriver: cgroupfs
clusterDNS: [` + clusterDNS + `]
clusterDomain: ` + clusterDomain + `
staticPodPath: /etc/kubernetes/manifests
tlsCertFile: /etc/kubernetes/pki/node.crt
tlsPrivateKeyFile: /etc/kubernetes/pki/node.key
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: ` + nodeCAFile + `}
authorization: {mode: Webhook}
failSwapOn: false
failCgroupV1: false
maxPods: 250
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
logging: {verbosity: 2}
`

// StartKubelet starts the kubelet and does not wait until the node is ready; see WaitReady.
func (b *Box) StartKubelet(ctx context.Context, options KubeletOptions) error {
	if b.kubelet.running() {
		return errors.New("start kubelet: already running")
	}
	argv, err := b.bed.kubeletCommand(ctx, options.Kind)
	if err != nil {
		return err
	}
	if err := b.writeKubeletConfig(options); err != nil {
		return err
	}
	if err := b.record(options.Calls); err != nil {
		return err
	}
	argv = append(argv, b.kubeletFlags()...)
	b.kubelet, err = b.spawn("kubelet", append(argv, options.Flags...)...)
	return err
}

// kubeletFlags are the flags of every kubelet.
func (n *nodeFiles) kubeletFlags() []string {
	return []string{
		"--kubeconfig=/etc/kubernetes/kubelet.kubeconfig",
		"--config=/etc/kubernetes/kubelet.yaml",
		"--hostname-override=" + n.name,
		"--node-ip=" + n.Address(),
	}
}

func (n *nodeFiles) writeKubeletConfig(options KubeletOptions) error {
	base := kubeletConfig
	if options.Calls != "" {
		base = strings.Replace(base, containerdSocket, recordedSocket, 1)
	}
	config, err := overlayYAML(base, options.Config)
	if err != nil {
		return fmt.Errorf("make kubelet configuration: %w", err)
	}
	return n.writeFile("/etc/kubernetes/kubelet.yaml", config)
}

// StopKubelet sends SIGTERM to the kubelet and waits. Pods keep running.
func (b *Box) StopKubelet() error { return b.kubelet.stop(20 * time.Second) }

// KillKubelet kills the kubelet. Pods keep running.
func (b *Box) KillKubelet() error { return b.kubelet.kill() }

// PauseKubelet suspends the kubelet, which then neither answers nor acts, until resume is called.
func (b *Box) PauseKubelet() (resume func() error, err error) {
	pid, err := b.kubelet.target()
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("pause kubelet: %w", err)
	}
	if err := awaitStopped(pid); err != nil {
		return nil, fmt.Errorf("pause kubelet: %w", err)
	}
	return func() error {
		// nsenter suspends itself with its child.
		return errors.Join(syscall.Kill(pid, syscall.SIGCONT), b.kubelet.cmd.Process.Signal(syscall.SIGCONT))
	}, nil
}

// writeIdentity writes the node's certificates and kubeconfig.
func (n *nodeFiles) writeIdentity() error {
	c := n.bed.ControlPlane
	client, err := c.ca.client("node-"+n.name, "system:node:"+n.name, "system:nodes")
	if err != nil {
		return err
	}
	serving, err := c.ca.serving("node-"+n.name+"-serving", n.name, n.Address())
	if err != nil {
		return err
	}
	for path, source := range map[string]string{
		nodeCAFile:                     c.ca.caFile(),
		"/etc/kubernetes/pki/node.crt": serving.cert,
		"/etc/kubernetes/pki/node.key": serving.key,
	} {
		data, err := readFile(source)
		if err != nil {
			return err
		}
		if err := n.writeFile(path, data); err != nil {
			return err
		}
	}
	if err := n.writeFile("/etc/kubernetes/manifests/.keep", nil); err != nil {
		return err
	}
	return writeKubeconfig(n.Path("/etc/kubernetes/kubelet.kubeconfig"), c.Server, c.ca, client)
}

// kubeletCommand returns the kubelet of a kind. It builds Swiftlet if needed.
func (b *Bed) kubeletCommand(ctx context.Context, kind KubeletKind) ([]string, error) {
	switch kind {
	case Reference:
		return []string{filepath.Join(b.bin.Reference, "kubelet")}, nil
	case Ours:
		program, err := b.ourKubelet(ctx)
		return []string{program}, err
	}
	if strings.HasPrefix(string(kind), "v1.") {
		program, err := b.bin.oldKubelet(ctx, b.progress, string(kind))
		return []string{program}, err
	}
	return nil, fmt.Errorf("start kubelet: unknown kind %q", kind)
}

// overlayYAML merges the fields of one document into another.
func overlayYAML(base, over string) ([]byte, error) {
	var below, above map[string]any
	if err := yaml.Unmarshal([]byte(base), &below); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal([]byte(over), &above); err != nil {
		return nil, err
	}
	return yaml.Marshal(mergeFields(below, above))
}

func mergeFields(below, above map[string]any) map[string]any {
	merged := maps.Clone(below)
	for key, value := range above {
		inner, isMap := value.(map[string]any)
		if under, ok := merged[key].(map[string]any); ok && isMap {
			value = mergeFields(under, inner)
		}
		merged[key] = value
	}
	return merged
}

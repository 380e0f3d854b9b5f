package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
	apiservercompat "k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"swiftlet/apiserver/internal/demand"
	"swiftlet/apiserver/internal/manifests"
	"swiftlet/apiserver/internal/nodebinding"
	"swiftlet/apiserver/internal/serviceproxy"
)

// Config holds the settings of a server.
type Config struct {
	// Addresses are those to listen on: a loopback address, and that of the pods' bridge if pods may connect.
	Addresses []netip.AddrPort
	// NodeName is the node that pods are bound to.
	NodeName string
	// PKI is a directory with the files that kubeadm has there: ca.crt, apiserver.crt,
	// apiserver-kubelet-client.crt, their keys, and sa.key.
	PKI string
	// Services is the range of cluster IPs.
	Services netip.Prefix
	// Pods is the range of the addresses of the node's pods. If it is set, Services are led to them.
	Pods netip.Prefix
	// Volumes is the directory of local-path volumes. It need not exist.
	Volumes string
	// Manifests is a directory of files whose objects are applied, "" for none. Report receives all problems
	// with them when these change.
	Manifests string
	Report    func([]manifests.Problem)
	// Flags are further flags of kube-apiserver. They override ours.
	Flags []string
}

func (c Config) pki(file string) string { return filepath.Join(c.PKI, file) }

// proxy returns nil if Services are not led to pods.
func (c Config) proxy() *serviceproxy.Config {
	if !c.Pods.IsValid() {
		return nil
	}
	return &serviceproxy.Config{Node: c.NodeName, Pods: c.Pods}
}

func (c Config) loopback() netip.Addr { return c.Addresses[0].Addr() }

// flags returns the flags of kube-apiserver for a single node.
func (c Config) flags() []string {
	return append([]string{
		"--bind-address=" + c.loopback().String(),
		"--secure-port=" + strconv.Itoa(int(c.Addresses[0].Port())),
		"--advertise-address=" + c.loopback().String(),
		"--service-cluster-ip-range=" + c.Services.String(),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--kubelet-certificate-authority=" + c.pki("ca.crt"),
		"--kubelet-client-certificate=" + c.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + c.pki("apiserver-kubelet-client.key"),
		// The agent's certificate has the name of the node, whatever address the node has.
		"--kubelet-preferred-address-types=Hostname",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki("sa.key"),
		"--service-account-signing-key-file=" + c.pki("sa.key"),
		"--authorization-mode=Node,RBAC",
		"--anonymous-auth=false",
		"--allow-privileged=true",
		"--etcd-servers=" + etcdEndpoint,
		// One node has few watchers: they read from etcd, and no resource is kept twice.
		"--watch-cache=false",
		// etcd compacts by itself.
		"--etcd-compaction-interval=0",
		// There are no other servers to agree with, and one user's requests need no queues.
		"--endpoint-reconciler-type=none",
		"--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false," + serviceproxy.FeatureGate + "=true",
		"--enable-priority-and-fairness=false",
		"--profiling=false",
		"--enable-admission-plugins=NodeRestriction," + nodebinding.PluginName + "," + demand.PluginName,
		// The first reads every OpenAPI document at the start. The second taints a new node until a controller
		// that is not here removes the taint.
		"--disable-admission-plugins=MutatingAdmissionPolicy,TaintNodesByCondition",
	}, c.Flags...)
}

// etcdEndpoint is never resolved: connections are made in memory.
const etcdEndpoint = "http://etcd.local:2379"

// Dialer connects to etcd.
type Dialer interface {
	Dial(ctx context.Context) (net.Conn, error)
}

// dialKubelet connects to the kubelet, which listens on loopback. The name of the node need not resolve.
func (c Config) dialKubelet(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to kubelet: %w", err)
	}
	return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(c.loopback().String(), port))
}

// options completes and validates the options of kube-apiserver.
func (c Config) options(ctx context.Context, store Dialer, needed *demand.Demand, binding *nodebinding.Binding) (options.CompletedOptions, error) {
	none := options.CompletedOptions{}
	if c.NodeName == "" || len(c.Addresses) == 0 {
		return none, errors.New("no node name or no address")
	}
	opts := options.NewServerRunOptions()
	binding.Register(opts.Admission.GenericAdmission.Plugins)
	needed.Register(opts.Admission.GenericAdmission.Plugins)
	own := []string{nodebinding.PluginName, demand.PluginName}
	opts.Admission.GenericAdmission.RecommendedPluginOrder = append(opts.Admission.GenericAdmission.RecommendedPluginOrder, own...) // after the plugins that set what a pod requests
	opts.Admission.GenericAdmission.DefaultOffPlugins.Insert(own...)
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(c.flags()); err != nil {
		return none, err
	}
	if !opts.SecureServing.BindAddress.IsLoopback() {
		return none, fmt.Errorf("%s is not a loopback address", opts.SecureServing.BindAddress)
	}
	if err := apiservercompat.DefaultComponentGlobalsRegistry.Set(); err != nil {
		return none, err
	}
	opts.Etcd.StorageConfig.Transport.EgressLookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
		return func(ctx context.Context, _, _ string) (net.Conn, error) { return store.Dial(ctx) }, nil
	}
	opts.KubeletConfig.Lookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) { return c.dialKubelet, nil }
	listener, err := listen(ctx, podConnections(ctx), c.Addresses...)
	if err != nil {
		return none, err
	}
	opts.SecureServing.Listener = listener // until the server closes it
	completed, err := opts.Complete(ctx)
	if err != nil {
		return none, err
	}
	return completed, errors.Join(completed.Validate()...)
}

// Package serviceproxy leads the traffic of Services to their endpoints: kube-proxy's nftables mode, in the process of
// the API server.
package serviceproxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	discoveryinformers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/proxy/apis"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
	"k8s.io/kubernetes/pkg/proxy/config"
	"k8s.io/kubernetes/pkg/proxy/nftables"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"
	"k8s.io/utils/ptr"
)

const (
	// syncPeriod is how often rules are retried after an error, as with kube-proxy.
	syncPeriod = 30 * time.Second
	// minSyncPeriod collects changes that come at the same time.
	minSyncPeriod = 100 * time.Millisecond
	// masqueradeBit is that of kube-proxy. The CNI plugin portmap uses bit 13.
	masqueradeBit = 14
)

// FeatureGate, if enabled, lets node ports of TCP answer on 127.0.0.1: a connection there is forwarded by this process,
// as kernel settings that would lead it to a pod also let pods reach the host's loopback.
const FeatureGate = "KubeProxyNFTablesLocalhostNodePorts"

// Config says for which node the proxy is.
type Config struct {
	Node string
	Pods netip.Prefix // the addresses of its pods
}

// Proxy is the proxy of a node.
type Proxy struct {
	cfg      Config
	proxier  *nftables.Proxier
	services *config.ServiceConfig
	slices   *config.EndpointSliceConfig
}

// New returns a proxy for what informers have. It changes nothing.
func New(ctx context.Context, cfg Config, services coreinformers.ServiceInformer, slices discoveryinformers.EndpointSliceInformer) (*Proxy, error) {
	settings := &proxyconfig.KubeProxyConfiguration{
		SyncPeriod:        metav1.Duration{Duration: syncPeriod},
		MinSyncPeriod:     metav1.Duration{Duration: minSyncPeriod},
		NodePortAddresses: []string{"0.0.0.0/0", "127.0.0.0/8"}, // the second is for FeatureGate
	}
	settings.NFTables.MasqueradeBit = ptr.To(int32(masqueradeBit))
	settings.Linux.MasqueradeAll = !bridgeFiltered()
	if settings.Linux.MasqueradeAll {
		klog.FromContext(ctx).Info("serviceproxy: bridge netfilter is off, connections to Services come from the address of the bridge")
	}
	proxier, err := nftables.NewProxier(ctx, settings, corev1.IPv4Protocol, proxyutil.NewDetectLocalByCIDR(cfg.Pods.String()),
		cfg.Node, net.IPv4(127, 0, 0, 1), nil, nil, false)
	if err != nil {
		return nil, fmt.Errorf("create service proxy: %w", err)
	}
	p := &Proxy{
		cfg: cfg, proxier: proxier,
		services: config.NewServiceConfig(ctx, services, 0), slices: config.NewEndpointSliceConfig(ctx, slices, 0),
	}
	p.services.RegisterEventHandler(served{proxier})
	p.slices.RegisterEventHandler(proxied{proxier})
	return p, nil
}

// Run keeps the rules up to date until ctx is done. It leaves them: Services work while this process is not there.
func (p *Proxy) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { p.services.Run(ctx.Done()) })
	running.Go(func() { p.slices.Run(ctx.Done()) })
	running.Go(func() { p.restore(ctx) })
	go p.proxier.SyncLoop() // has no end
}

// served hides Services that are not the proxy's: those of other proxies, and that of the API server, which has no
// endpoints here.
type served struct{ *nftables.Proxier }

func (s served) OnServiceAdd(service *corev1.Service) { s.OnServiceUpdate(nil, service) }

func (s served) OnServiceUpdate(old, service *corev1.Service) {
	s.Proxier.OnServiceUpdate(ifServed(old), ifServed(service))
}

func (s served) OnServiceDelete(service *corev1.Service) { s.OnServiceUpdate(service, nil) }

// ifServed returns nil for a Service that is not the proxy's.
func ifServed(service *corev1.Service) *corev1.Service {
	if service == nil || service.Namespace == metav1.NamespaceDefault && service.Name == "kubernetes" {
		return nil
	}
	if _, other := service.Labels[apis.LabelServiceProxyName]; other {
		return nil
	}
	return service
}

// proxied hides slices of headless Services. Users may label others as such, too.
type proxied struct{ config.EndpointSliceHandler }

func (p proxied) OnEndpointSliceAdd(slice *discoveryv1.EndpointSlice) {
	if !headless(slice) {
		p.EndpointSliceHandler.OnEndpointSliceAdd(slice)
	}
}

func (p proxied) OnEndpointSliceUpdate(old, slice *discoveryv1.EndpointSlice) {
	switch {
	case headless(old):
		p.OnEndpointSliceAdd(slice)
	case headless(slice):
		p.OnEndpointSliceDelete(old)
	default:
		p.EndpointSliceHandler.OnEndpointSliceUpdate(old, slice)
	}
}

func (p proxied) OnEndpointSliceDelete(slice *discoveryv1.EndpointSlice) {
	if !headless(slice) {
		p.EndpointSliceHandler.OnEndpointSliceDelete(slice)
	}
}

func headless(slice *discoveryv1.EndpointSlice) bool {
	_, labelled := slice.Labels[corev1.IsHeadlessService]
	return labelled
}

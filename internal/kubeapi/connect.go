package kubeapi

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// Config says how to reach the API server and how hard it may be asked.
type Config struct {
	// Certificate is shown instead of the one in the connection settings; nil where those
	// have none, or none that changes.
	Certificate Certificate
	// Follow stands around the transport, to show the requests; may be nil.
	Follow func(http.RoundTripper) http.RoundTripper
	// Back is called when the API server answers after it could not be reached. It must not
	// block; may be nil.
	Back func()
	// UserAgent is sent with every request; empty means client-go's default.
	UserAgent string

	// ContentType is the wire format: application/vnd.kubernetes.protobuf where empty.
	ContentType string
	// QPS and Burst limit the general client. A negative QPS means no limit.
	QPS   float32
	Burst int
	// EventQPS and EventBurst limit the events client. Zero QPS means no limit, as the
	// kubelet configuration has it.
	EventQPS   float32
	EventBurst int
	// HeartbeatTimeout bounds one heartbeat request, so that a dead connection is noticed
	// before the lease runs out. The smaller of the status frequency and the lease duration.
	HeartbeatTimeout time.Duration
}

// Clients are the ways to the API server. They share connections but not rate limits:
// a burst of events must not delay a heartbeat, nor a heartbeat wait behind pod reads.
type Clients struct {
	Kube      kubernetes.Interface
	Heartbeat kubernetes.Interface
	Events    corev1.EventsGetter

	// REST is a copy of the connection settings, for code that needs the raw transport.
	REST *rest.Config

	dialer *connrotation.Dialer
}

const protobuf = "application/vnd.kubernetes.protobuf"

// NewClients makes the clients from connection settings, as a kubeconfig has them. It opens
// no connection.
func NewClients(base *rest.Config, cfg Config) (*Clients, error) {
	base = rest.CopyConfig(base)
	base.ContentType = cfg.ContentType
	if base.ContentType == "" {
		base.ContentType = protobuf
	}
	if base.ContentType == protobuf {
		// Some answers (custom resources, errors of proxies) exist as JSON only.
		base.AcceptContentTypes = protobuf + ",application/json"
	}
	if cfg.UserAgent != "" {
		base.UserAgent = cfg.UserAgent
	}
	// One connection for all three: it costs memory on both ends. It is dialled through
	// dialer so that it can be cut.
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext)
	if cfg.Certificate == nil {
		base.Dial = dialer.DialContext
	} else if err := present(base, cfg.Certificate, dialer); err != nil {
		return nil, err
	}
	if cfg.Follow != nil {
		base.Wrap(cfg.Follow)
	}
	if cfg.Back != nil {
		base.Wrap(func(next http.RoundTripper) http.RoundTripper { return &returning{next: next, back: cfg.Back} })
	}
	shared, err := rest.HTTPClientFor(base)
	if err != nil {
		return nil, fmt.Errorf("make transport to %s: %w", base.Host, err)
	}
	kube, err := newClient(limited(base, cfg.QPS, cfg.Burst), shared)
	if err != nil {
		return nil, err
	}
	eventQPS := cfg.EventQPS
	if eventQPS == 0 {
		eventQPS = -1
	}
	events, err := newClient(limited(base, eventQPS, cfg.EventBurst), shared)
	if err != nil {
		return nil, err
	}
	hasty := *shared
	hasty.Timeout = cfg.HeartbeatTimeout
	heartbeat, err := newClient(limited(base, -1, 0), &hasty)
	if err != nil {
		return nil, err
	}
	return &Clients{
		Kube:      kube,
		Heartbeat: heartbeat,
		Events:    events.CoreV1(),
		REST:      base,
		dialer:    dialer,
	}, nil
}

// dialTimeout bounds the wait for a connection, and is how often the kernel checks one.
const dialTimeout = 30 * time.Second

// CloseConnections cuts all connections; the next request dials anew. Called when the
// client certificate is another one, and when heartbeats keep failing: a request on a
// connection whose other end is gone would hang for minutes.
func (c *Clients) CloseConnections() { c.dialer.CloseAll() }

func limited(base *rest.Config, qps float32, burst int) *rest.Config {
	c := rest.CopyConfig(base)
	c.QPS, c.Burst = qps, burst
	return c
}

func newClient(c *rest.Config, over *http.Client) (*kubernetes.Clientset, error) {
	client, err := kubernetes.NewForConfigAndClient(c, over)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", c.Host, err)
	}
	return client, nil
}

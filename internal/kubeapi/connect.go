package kubeapi

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"

	"swiftlet/internal/kubeclient"
)

// Config configures the API server clients and their rate limits.
type Config struct {
	// Certificate replaces the client certificate of the connection settings; nil where it
	// is static or absent.
	Certificate Certificate
	// WrapTransport wraps the transport, for tracing; may be nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
	// OnReconnect is called when the API server responds again after it was unreachable. It must not
	// block; may be nil.
	OnReconnect func()
	// LastKnown and LastKnownDeps configure the last-known state of the clients.
	LastKnown     LastKnownConfig
	LastKnownDeps LastKnownDeps
	// UserAgent is sent with every request; empty means client-go's default.
	UserAgent string

	// ContentType is the wire format: application/vnd.kubernetes.protobuf where empty.
	ContentType string
	// QPS and Burst limit the general client, and once more the client that reads ConfigMaps and Secrets. A
	// negative QPS means no limit.
	QPS   float32
	Burst int
	// EventQPS and EventBurst limit the events client. A QPS of zero means no limit, as in the
	// kubelet configuration.
	EventQPS   float32
	EventBurst int
	// HeartbeatTimeout limits one heartbeat request, so that a dead connection is detected
	// before the lease expires. The smaller of the status frequency and the lease duration.
	HeartbeatTimeout time.Duration
}

// Clients are the API server clients. They share connections but not rate limits: neither a
// burst of events nor pod reads may delay a heartbeat, and neither a stranger's token nor a pod with thousands
// of ConfigMaps the status of another pod.
type Clients struct {
	Kube *kubeclient.Client
	// Objects reads the ConfigMaps and Secrets of pods.
	Objects   *kubeclient.Client
	Heartbeat *kubeclient.Client
	Events    *kubeclient.Client
	// Reviews asks who the clients of the node are and what they may do.
	Reviews *kubeclient.Client

	// LastKnown is notified of each response; nil if it is off.
	LastKnown *LastKnown

	// REST is a copy of the connection settings, for code that needs the raw transport.
	REST *rest.Config

	dialer *connrotation.Dialer
}

// The server of the node limits reviews of tokens further, by source. This limit also covers reviews of
// access and retries.
const (
	reviewQPS   = 100
	reviewBurst = 200
)

const protobuf = "application/vnd.kubernetes.protobuf"

// NewClients returns clients for the connection settings of a kubeconfig. It opens no
// connection.
func NewClients(base *rest.Config, cfg Config) (*Clients, error) {
	lastKnown, err := NewLastKnown(cfg.LastKnown, cfg.LastKnownDeps)
	if err != nil {
		return nil, err
	}
	base = rest.CopyConfig(base)
	base.ContentType = cfg.ContentType
	if base.ContentType == "" {
		base.ContentType = protobuf
	}
	if base.ContentType == protobuf {
		// Some responses (custom resources, errors of proxies) exist as JSON only.
		base.AcceptContentTypes = protobuf + ",application/json"
	}
	if cfg.UserAgent != "" {
		base.UserAgent = cfg.UserAgent
	}
	// All clients share one connection, because each costs memory on both ends.
	// CloseConnections closes it through the dialer.
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext)
	if cfg.Certificate == nil {
		base.Dial = dialer.DialContext
	} else if err := useCertificate(base, cfg.Certificate, dialer); err != nil {
		return nil, err
	}
	if file := base.BearerTokenFile; file != "" {
		// client-go reads the file once in a minute. This reads it also after the API server has
		// rejected the token.
		base.BearerToken, base.BearerTokenFile = "", ""
		base.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(file)))
	}
	if cfg.WrapTransport != nil {
		base.Wrap(cfg.WrapTransport)
	}
	if cfg.OnReconnect != nil {
		base.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return &reconnectTransport{next: next, onReconnect: cfg.OnReconnect, onResponse: lastKnown.Contacted}
		})
	}
	shared, err := rest.HTTPClientFor(base)
	if err != nil {
		return nil, fmt.Errorf("new transport to %s: %w", base.Host, err)
	}
	c := &Clients{REST: base, LastKnown: lastKnown, dialer: dialer}
	if err := c.connect(base, shared, cfg); err != nil {
		return nil, err
	}
	return c, nil
}

// connect makes the clients of a transport.
func (c *Clients) connect(base *rest.Config, shared *http.Client, cfg Config) (err error) {
	eventQPS := cfg.EventQPS
	if eventQPS == 0 {
		eventQPS = -1
	}
	withTimeout := *shared
	withTimeout.Timeout = cfg.HeartbeatTimeout
	for _, one := range []struct {
		client **kubeclient.Client
		http   *http.Client
		qps    float32
		burst  int
	}{
		{&c.Kube, shared, cfg.QPS, cfg.Burst},
		{&c.Objects, shared, cfg.QPS, cfg.Burst},
		{&c.Events, shared, eventQPS, cfg.EventBurst},
		{&c.Reviews, shared, reviewQPS, reviewBurst},
		{&c.Heartbeat, &withTimeout, -1, 0},
	} {
		limited := rest.CopyConfig(base)
		limited.QPS, limited.Burst = one.qps, one.burst
		if *one.client, err = kubeclient.New(limited, one.http); err != nil {
			return err
		}
	}
	return nil
}

// dialTimeout limits a dial, and is the interval of TCP keep-alives.
const dialTimeout = 30 * time.Second

// CloseConnections closes all connections; the next request dials again. Call it when the client
// certificate has changed, and when heartbeats keep failing: a request on a dead connection would
// hang for minutes.
func (c *Clients) CloseConnections() { c.dialer.CloseAll() }

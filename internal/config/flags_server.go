package config

import (
	"strings"

	cliflag "k8s.io/component-base/cli/flag"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

func (c *commandLine) bindServer(kc *kubelet.KubeletConfiguration) {
	s := c.under("Server")
	s.bool("enable-server", "enableServer", kc.EnableServer, "serve the agent's HTTPS API")
	s.value("address", "address", (*ipValue)(&kc.Address), "address to serve on; 0.0.0.0 or :: for all")
	s.int32("port", "port", &kc.Port, "port to serve on")
	s.int32("read-only-port", "readOnlyPort", &kc.ReadOnlyPort, "port to serve pods and metrics on to anyone; 0 means none")
	s.value("healthz-bind-address", "healthzBindAddress", (*ipValue)(&kc.HealthzBindAddress), "address of the health check")
	s.int32("healthz-port", "healthzPort", kc.HealthzPort, "port of the health check; 0 means none")
	s.bool("enable-debugging-handlers", "enableDebuggingHandlers", kc.EnableDebuggingHandlers, "serve logs, exec, attach and port-forward")
	s.bool("contention-profiling", "enableContentionProfiling", &kc.EnableContentionProfiling, "profile blocking when profiling is on")
	s.duration("streaming-connection-idle-timeout", "streamingConnectionIdleTimeout", &kc.StreamingConnectionIdleTimeout.Duration, "time after which an idle exec, attach or port-forward is closed; 0 means never")
}

func (c *commandLine) bindAuth(f *Flags, kc *kubelet.KubeletConfiguration) {
	s := c.under("Server")
	authn, authz := &kc.Authentication, &kc.Authorization
	s.bool("anonymous-auth", "authentication.anonymous.enabled", authn.Anonymous.Enabled, "take requests without credentials, as system:anonymous")
	s.bool("authentication-token-webhook", "authentication.webhook.enabled", authn.Webhook.Enabled, "let the API server check bearer tokens")
	s.duration("authentication-token-webhook-cache-ttl", "authentication.webhook.cacheTTL", &authn.Webhook.CacheTTL.Duration, "how long the API server's answer about a token is kept")
	s.string("client-ca-file", "authentication.x509.clientCAFile", &authn.X509.ClientCAFile, "authorities that sign client certificates")
	s.string("authorization-mode", "authorization.mode", (*string)(&authz.Mode), "who may do what: Webhook asks the API server, AlwaysAllow asks nobody")
	s.duration("authorization-webhook-cache-authorized-ttl", "authorization.webhook.cacheAuthorizedTTL", &authz.Webhook.CacheAuthorizedTTL.Duration, "how long a yes of the API server is kept")
	s.duration("authorization-webhook-cache-unauthorized-ttl", "authorization.webhook.cacheUnauthorizedTTL", &authz.Webhook.CacheUnauthorizedTTL.Duration, "how long a no of the API server is kept")
	s.bool("require-create-for-upgrades", "", &f.CreateForUpgrades, "require the verb create, not get, of clients that open exec, attach or port-forward with GET, as WebSockets do; only Swiftlet has this flag")
	s.bool("enable-ui", "", &f.EnableUI, "serve a page for people below /ui/ to clients that may get nodes/proxy; only Swiftlet has this flag")
}

func (c *commandLine) bindTLS(kc *kubelet.KubeletConfiguration) {
	s := c.under("Server")
	s.string("tls-cert-file", "tlsCertFile", &kc.TLSCertFile, "certificate of the HTTPS API, followed by its intermediates; without it one is made in --cert-dir")
	s.string("tls-private-key-file", "tlsPrivateKeyFile", &kc.TLSPrivateKeyFile, "private key of --tls-cert-file")
	s.strings("tls-cipher-suites", "tlsCipherSuites", &kc.TLSCipherSuites, "cipher suites of TLS 1.2, as in TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; by default Go's choice")
	s.string("tls-min-version", "tlsMinVersion", &kc.TLSMinVersion, "oldest TLS version: "+strings.Join(cliflag.TLSPossibleVersions(), ", "))
	s.bool("rotate-server-certificates", "serverTLSBootstrap", &kc.ServerTLSBootstrap, "request the serving certificate from the API server, and a new one before it expires")
}

package agent

import (
	"context"

	"swiftlet/internal/certificate"
	"swiftlet/internal/config"
	"swiftlet/internal/kubeapi"
)

// newClients makes the clients and the rotator of their certificate. The rotator is nil if
// certificate rotation is disabled: then the clients reload the certificate's files when they
// change.
func newClients(b *base) (*kubeapi.Clients, *certificate.Rotator, error) {
	userAgent := config.UserAgent(b.opts.Version)
	cfg := kubeapi.ConfigFrom(&b.cfg.Kubelet, userAgent)
	cfg.OnReconnect, cfg.WrapTransport = b.apiServerReturned, b.around.API
	cfg.LastKnown = kubeapi.LastKnownConfig{On: b.cfg.Flags.LastKnownPods, RootDir: b.cfg.Flags.RootDir, NodeName: b.nodeName}
	cfg.LastKnownDeps = kubeapi.LastKnownDeps{Clock: b.clock, Log: b.log}
	if b.tracing != nil {
		cfg.WrapTransport = b.tracing.Transport
	}
	flags := &b.cfg.Flags
	if !b.cfg.Kubelet.RotateCertificates && flags.BootstrapKubeconfig == "" {
		files, server, err := certificate.NewClientFiles(flags.Kubeconfig, b.log)
		if err != nil {
			return nil, nil, err
		}
		if files != nil {
			cfg.Certificate = files
		}
		clients, err := kubeapi.NewClients(server, cfg)
		return clients, nil, err
	}
	rotator, server, err := certificate.NewClient(certificate.ClientConfig{
		NodeName: b.nodeName, Kubeconfig: flags.Kubeconfig, Bootstrap: flags.BootstrapKubeconfig, Dir: flags.CertDir,
		Renew: b.cfg.Kubelet.RotateCertificates, UserAgent: userAgent,
	}, rotatorDeps(b))
	if err != nil {
		return nil, nil, err
	}
	cfg.Certificate = rotator
	clients, err := kubeapi.NewClients(server, cfg)
	return clients, rotator, err
}

// renewClientCertificate adds the rotation of the client certificate.
func (a *api) renewClientCertificate(b *base, rotator *certificate.Rotator) {
	deps := a.renewal()
	deps.Changed = a.clients.CloseConnections
	deps.Failed = b.metrics.ClientCertificate(rotator.Current)
	b.add("client certificate", func(ctx context.Context) error { return rotator.Run(ctx, deps) })
}

// makeServingCertificate adds the rotation of the serving certificate, which the API server
// issues if serverTLSBootstrap is set.
func (a *api) makeServingCertificate(b *base) (err error) {
	kc := &b.cfg.Kubelet
	if !kc.ServerTLSBootstrap {
		return nil
	}
	a.serving, err = certificate.NewServing(
		certificate.ServingConfig{Dir: b.cfg.Flags.CertDir, CertFile: kc.TLSCertFile, KeyFile: kc.TLSPrivateKeyFile}, rotatorDeps(b))
	if err != nil {
		return err
	}
	deps := a.renewal()
	deps.Renewed, deps.Failed = b.metrics.ServingCertificate(a.serving.Current)
	b.add("serving certificate", func(ctx context.Context) error { return a.serving.Run(ctx, deps) })
	return nil
}

func rotatorDeps(b *base) certificate.Deps {
	return certificate.Deps{Clock: b.clock, Log: b.log, Jitter: b.around.Random}
}

// renewal has the dependencies of both rotations. An event that is recorded before there is a
// client certificate is sent when there is one, and explains why the node registered late.
func (a *api) renewal() certificate.RunDeps {
	return certificate.RunDeps{
		Client:    a.clients.Kube,
		NotIssued: func(err error) { a.warnNode("CertificateNotIssued", err.Error()) },
	}
}

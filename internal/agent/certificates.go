package agent

import (
	"crypto/tls"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"swiftlet/internal/certificate"
	"swiftlet/internal/config"
	"swiftlet/internal/kubeapi"
)

const userAgent = "swiftlet/" + config.KubernetesVersion

// makeClientCertificate finds what the node shows to the API server, and where that is. The
// node looks after its certificate itself where it is told to renew it or how to get one;
// otherwise somebody else does, and it follows the files.
func (a *Agent) makeClientCertificate() (*rest.Config, kubeapi.Certificate, error) {
	flags := &a.cfg.Flags
	if !a.cfg.Kubelet.RotateCertificates && flags.BootstrapKubeconfig == "" {
		files, base, err := certificate.NewFiles(flags.Kubeconfig, a.log)
		if err != nil || files == nil {
			return base, nil, err
		}
		return base, files, nil
	}
	deps := a.rotation()
	deps.Changed = func() { a.api.clients.CloseConnections() }
	deps.Failed = a.metrics.ClientCertificate(func() *tls.Certificate { return a.api.certificate.Current() })
	rotator, base, err := certificate.NewClient(certificate.ClientConfig{
		NodeName:   a.name,
		Kubeconfig: flags.Kubeconfig,
		Bootstrap:  flags.BootstrapKubeconfig,
		Dir:        flags.CertDir,
		Renew:      a.cfg.Kubelet.RotateCertificates,
		UserAgent:  userAgent,
	}, deps)
	if err != nil {
		return nil, nil, err
	}
	a.api.certificate = rotator
	a.api.parts = append(a.api.parts, part{"client certificate", rotator.Run})
	return base, rotator, nil
}

// makeServingCertificate has the API server issue the certificate of the node's own API
// where that is asked for.
func (a *Agent) makeServingCertificate() error {
	kc := &a.cfg.Kubelet
	if !kc.ServerTLSBootstrap {
		return nil
	}
	deps := a.rotation()
	deps.Renewed, deps.Failed = a.metrics.ServingCertificate(func() *tls.Certificate { return a.api.serving.Current() })
	rotator, err := certificate.NewServing(certificate.ServingConfig{
		NodeName: a.name,
		Dir:      a.cfg.Flags.CertDir,
		CertFile: kc.TLSCertFile,
		KeyFile:  kc.TLSPrivateKeyFile,
	}, deps)
	if err != nil {
		return err
	}
	a.api.serving = rotator
	a.api.parts = append(a.api.parts, part{"serving certificate", rotator.Run})
	return nil
}

// rotation is what both certificates are kept with.
func (a *Agent) rotation() certificate.Deps {
	return certificate.Deps{
		Client: func(*tls.Certificate) (kubernetes.Interface, func(), error) {
			return a.api.clients.Kube, func() {}, nil
		},
		Clock:  a.clock,
		Log:    a.log,
		Jitter: rand.Float64,
		// Without a certificate the event waits for one, and then tells why the node came late.
		Trouble: func(err error) {
			a.api.events.Eventf(a.nodeRef(), v1.EventTypeWarning, "CertificateNotIssued", "%v", err)
		},
	}
}

// addressed has the serving certificate made out for where the node is.
func (a *Agent) addressed(addresses []v1.NodeAddress) {
	if a.api.serving != nil {
		a.api.serving.Want(certificate.ServingRequest(a.name, addresses, a.cfg.Features.AllowDNSOnlyNodeCSR))
	}
}

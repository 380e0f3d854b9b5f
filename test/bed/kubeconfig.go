package bed

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig for a client certificate.
func writeKubeconfig(path, server string, ca *authority, client keyPair) error {
	cert, key, err := client.read()
	if err != nil {
		return err
	}
	text, err := kubeconfigFor(server, ca, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// kubeconfigFor returns a kubeconfig with embedded certificates, so that it works in any mount
// namespace.
func kubeconfigFor(server string, ca *authority, user *clientcmdapi.AuthInfo) ([]byte, error) {
	caCert, err := readFile(ca.caFile())
	if err != nil {
		return nil, err
	}
	const name = "bed"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caCert}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	return text, nil
}

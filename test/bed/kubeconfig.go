package bed

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a file that stands by itself: certificates are inside, so that it
// can be read from any mount namespace.
func writeKubeconfig(path, server string, ca *authority, client keyPair) error {
	caCert, err := readFile(ca.caFile())
	if err != nil {
		return err
	}
	cert, key, err := client.read()
	if err != nil {
		return err
	}
	const name = "bed"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caCert}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}

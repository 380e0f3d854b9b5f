package source

import (
	"net/http"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/pod"
)

// httpTimeout limits one request for a manifest URL.
const httpTimeout = 10 * time.Second

// NamesFrom lists the configured sources. No pod is an orphan before each of them was read.
func NamesFrom(kc *kubelet.KubeletConfiguration, standalone bool) []pod.Source {
	var names []pod.Source
	if kc.StaticPodPath != "" {
		names = append(names, pod.SourceFile)
	}
	if kc.StaticPodURL != "" {
		names = append(names, pod.SourceHTTP)
	}
	if !standalone {
		names = append(names, pod.SourceAPI)
	}
	return names
}

// FileConfigFrom returns the configuration of the file source.
func FileConfigFrom(kc *kubelet.KubeletConfiguration, nodeName string) FileConfig {
	return FileConfig{Path: kc.StaticPodPath, NodeName: nodeName, CheckFrequency: kc.FileCheckFrequency.Duration}
}

// HTTPConfigFrom returns the configuration of the HTTP source, and its client.
func HTTPConfigFrom(kc *kubelet.KubeletConfiguration, nodeName string) (HTTPConfig, *http.Client) {
	header := http.Header{}
	for name, values := range kc.StaticPodURLHeader {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return HTTPConfig{URL: kc.StaticPodURL, Header: header, NodeName: nodeName, CheckFrequency: kc.HTTPCheckFrequency.Duration},
		&http.Client{Timeout: httpTimeout}
}

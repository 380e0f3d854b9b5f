package config

import (
	"strings"

	cliflag "k8s.io/component-base/cli/flag"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubelet/pkg/apis"
)

func (c *commandLine) bindCluster(f *Flags, kc *kubelet.KubeletConfiguration) {
	s := c.under("Cluster")
	s.string("kubeconfig", "", &f.Kubeconfig, "kubeconfig file that says how to reach the API server; without it the agent runs alone")
	s.string("bootstrap-kubeconfig", "", &f.BootstrapKubeconfig, "kubeconfig file used to request a client certificate when the file of --kubeconfig does not exist yet; the certificate goes to --cert-dir, and --kubeconfig is written")
	s.string("cert-dir", "", &f.CertDir, "directory of the certificates that the agent makes or requests")
	s.string("cloud-provider", "", &f.CloudProvider, "\"external\" when a cloud controller manager initialises the node, empty otherwise")
	s.bool("last-known-pods", "", &f.LastKnownPods, "start the pods of the last contact when the API server does not respond after a start; they and the Secrets, ConfigMaps and tokens that they use are kept in a file below --root-dir that only root can read")
	s.string("provider-id", "providerID", &kc.ProviderID, "identifier of this machine at its cloud provider")
	s.string("kube-api-content-type", "contentType", &kc.ContentType, "content type of requests to the API server")
	s.int32("kube-api-qps", "kubeAPIQPS", kc.KubeAPIQPS, "requests a second to the API server, events and heartbeats aside; 0 means 50")
	s.int32("kube-api-burst", "kubeAPIBurst", &kc.KubeAPIBurst, "requests to the API server that may exceed --kube-api-qps at once; 0 means 100")
	s.int32("event-qps", "eventRecordQPS", kc.EventRecordQPS, "events a second; 0 means no limit")
	s.int32("event-burst", "eventBurst", &kc.EventBurst, "events that may exceed --event-qps at once; 0 means 100")
	s.bool("rotate-certificates", "rotateCertificates", &kc.RotateCertificates, "request a new client certificate before the old one expires")
}

func (c *commandLine) bindNode(f *Flags, kc *kubelet.KubeletConfiguration) {
	s := c.under("Node")
	s.string("hostname-override", "", &f.HostnameOverride, "name of the node, instead of the host's name")
	s.string("node-ip", "", &f.NodeIP, "address of the node, or one of each family separated by a comma; 0.0.0.0 or :: prefers a family")
	labels := cliflag.ConfigurationMap(f.NodeLabels)
	s.value("node-labels", "", &labels, "labels to register the node with, key=value separated by commas; in the kubernetes.io and k8s.io namespaces only those below "+
		strings.Join(apis.KubeletLabelNamespaces(), " and ")+", and "+strings.Join(apis.KubeletLabels(), ", "))
	s.bool("register-node", "registerNode", kc.RegisterNode, "register the node with the API server")
	s.value("register-with-taints", "registerWithTaints", (*taintsValue)(&kc.RegisterWithTaints), "taints to register the node with, key=value:effect separated by commas")
	s.duration("node-status-update-frequency", "nodeStatusUpdateFrequency", &kc.NodeStatusUpdateFrequency.Duration, "how often the node's status is computed; it is sent when it changed")
	s.int32("node-status-max-images", "nodeStatusMaxImages", kc.NodeStatusMaxImages, "images named in the node's status; -1 means all")
	s.int32("max-pods", "maxPods", &kc.MaxPods, "pods that may run on the node")
	s.int32("pods-per-core", "podsPerCore", &kc.PodsPerCore, "pods for each CPU, up to --max-pods; 0 means no such limit")
	s.string("pod-cidr", "podCIDR", &kc.PodCIDR, "range of pod addresses, used without an API server only")
	s.string("cluster-domain", "clusterDomain", &kc.ClusterDomain, "domain that containers search besides the host's own")
	s.strings("cluster-dns", "clusterDNS", &kc.ClusterDNS, "DNS servers of pods with dnsPolicy ClusterFirst")
	s.string("resolv-conf", "resolvConf", kc.ResolverConfig, "file that the containers' resolv.conf is made from")
	s.bool("enable-controller-attach-detach", "enableControllerAttachDetach", kc.EnableControllerAttachDetach, "leave attaching of volumes to the controller manager")
	s.string("volume-plugin-dir", "volumePluginDir", &kc.VolumePluginDir, "directory of third-party volume plugins")
	s.duration("volume-stats-agg-period", "volumeStatsAggPeriod", &kc.VolumeStatsAggPeriod.Duration, "how often volume usage is computed")
	s.bool("local-storage-capacity-isolation", "localStorageCapacityIsolation", kc.LocalStorageCapacityIsolation, "account for and limit local ephemeral storage")
}

func (c *commandLine) bindPodSources(kc *kubelet.KubeletConfiguration) {
	s := c.under("Pod sources")
	s.string("pod-manifest-path", "staticPodPath", &kc.StaticPodPath, "file or directory of static pods; names beginning with a dot are left out")
	s.string("manifest-url", "staticPodURL", &kc.StaticPodURL, "URL of static pods")
	s.value("manifest-url-header", "staticPodURLHeader", cliflag.NewColonSeparatedMultimapStringString(&kc.StaticPodURLHeader), "headers sent to --manifest-url, name:value separated by commas; may be repeated")
	s.duration("file-check-frequency", "fileCheckFrequency", &kc.FileCheckFrequency.Duration, "how often static pod files are looked through for changes that were not announced")
	s.duration("http-check-frequency", "httpCheckFrequency", &kc.HTTPCheckFrequency.Duration, "how often --manifest-url is read")
	s.duration("sync-frequency", "syncFrequency", &kc.SyncFrequency.Duration, "how often what no event reports is read again, such as Secrets that are not watched")
	s.bool("runonce", "runOnce", &kc.RunOnce, "no longer possible")
}

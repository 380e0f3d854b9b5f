package config

// KubernetesVersion is the Kubernetes release that this kubelet implements. --version prints it and
// the node reports it.
const KubernetesVersion = "v1.37.1"

// VersionAnnotation is the annotation with the version of Swiftlet, on the Node and in /statusz.
const VersionAnnotation = "swiftlet.dev/version"

package config

// KubernetesVersion is the release whose kubelet this agent stands in for: what
// --version prints, and what the node reports.
const KubernetesVersion = "v1.37.1"

package config

import (
	"fmt"
	"runtime"
)

// UserAgent is what the kubelet calls itself to the API server. It begins as that of the reference kubelet:
// rules and dashboards of the API server's clients match it, and field managers are named by its first part.
func UserAgent(swiftletVersion string) string {
	return fmt.Sprintf("kubelet/%s (%s/%s) kubernetes/unknown swiftlet/%s", KubernetesVersion, runtime.GOOS, runtime.GOARCH, swiftletVersion)
}

package kubeapi

import (
	"fmt"
	"runtime"

	"swiftlet/internal/config"
)

// UserAgent begins as that of the reference kubelet: rules and dashboards of the API server's clients match
// it, and field managers are named by its first part. version is that of Swiftlet.
func UserAgent(version string) string {
	return fmt.Sprintf("kubelet/%s (%s/%s) kubernetes/unknown swiftlet/%s", config.KubernetesVersion, runtime.GOOS, runtime.GOARCH, version)
}

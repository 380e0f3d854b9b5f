package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestClaimHealth checks that a device's health is in the status of the pod that uses it: Unknown if
// the driver's report has expired or the driver is down. The driver serves the older API versions.
func TestClaimHealth(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "sick-claims")
	driver := startClaimDriver(t, node, "old.swiftlet.dev", "-health", "2s", "-old")
	driver.awaitSlices(true)
	space := namespace(t)
	driver.claim(space, "claim")
	startPod(t, space, podWithClaim("pod", node.Name(), "claim"))
	device := driver.device("claim")
	shows := func(health, message string) {
		t.Helper()
		awaitPod(t, space, "pod", 2*timeout, func(p *corev1.Pod) string {
			if all := p.Status.ContainerStatuses[0].AllocatedResourcesStatus; len(all) == 1 && all[0].Name == "claim:device" && len(all[0].Resources) == 1 {
				one, text := all[0].Resources[0], ""
				if one.Message != nil {
					text = *one.Message
				}
				if string(one.ResourceID) == driver.name+"/device="+device && string(one.Health) == health && text == message {
					return ""
				}
			}
			return fmt.Sprintf("status shows %+v, want %s %s", p.Status.ContainerStatuses[0].AllocatedResourcesStatus, health, message)
		})
	}
	shows("Unknown", "")
	driver.set("health/"+device, "Healthy")
	shows("Healthy", "")
	driver.set("health/"+device, "Unhealthy too hot")
	shows("Unhealthy", "too hot")
	driver.set("health/"+device, "")
	shows("Unknown", "")
	driver.set("health/"+device, "Healthy")
	shows("Healthy", "")
	driver.stop()
	shows("Unknown", "")
	driver.start()
	shows("Healthy", "")

	stop := record[corev1.Pod](t, pods(space), "pod")
	restartAgent(t, node)
	startPod(t, space, sleeper("witness", node.Name()))
	for _, version := range stop() {
		for _, one := range version.Status.ContainerStatuses[0].AllocatedResourcesStatus {
			if len(one.Resources) != 1 || one.Resources[0].Health != corev1.ResourceHealthStatusHealthy {
				t.Errorf("status while the agent restarts: %+v", one)
			}
		}
	}
	deletePod(t, space, "pod")
	driver.awaitCalls("claim", "prepare", "unprepare")
}

package labels

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxName keeps names readable in `docker ps`, and within what Docker and file systems accept.
const maxName = 200

var forbidden = regexp.MustCompile(`[^a-zA-Z0-9.-]`)

// SandboxName is the name of a pause container. Two sandboxes have the same name only if the kubelet
// asks for the same attempt twice.
func SandboxName(c *runtimeapi.PodSandboxConfig) string {
	m := c.GetMetadata()
	return join("k8s", "POD", m.GetName(), m.GetNamespace(), m.GetUid(), strconv.FormatUint(uint64(m.GetAttempt()), 10))
}

// ContainerName is the name of a container of a sandbox.
func ContainerName(sandboxID string, c *runtimeapi.ContainerConfig) string {
	m := c.GetMetadata()
	return join("k8s", m.GetName(), sandboxID, strconv.FormatUint(uint64(m.GetAttempt()), 10))
}

// join separates parts by an underscore, which none of them has. If a part is changed or the name is too
// long, a hash of the original parts keeps it unique.
func join(parts ...string) string {
	clean := make([]string, len(parts))
	for i, part := range parts {
		clean[i] = forbidden.ReplaceAllString(part, "-")
	}
	name, original := strings.Join(clean, "_"), strings.Join(parts, "\x00")
	if len(name) <= maxName && name == strings.Join(parts, "_") && strings.Count(name, "_") == len(parts)-1 {
		return name
	}
	sum := sha256.Sum256([]byte(original))
	return name[:min(len(name), maxName)] + "_" + hex.EncodeToString(sum[:8])
}

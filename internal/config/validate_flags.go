package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	content "k8s.io/apimachinery/pkg/util/validation"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubelet/pkg/apis"
)

// validateFlags checks the flags that set no field of the configuration.
func validateFlags(f *Flags) (problems []problem) {
	addf := func(flag, format string, args ...any) {
		problems = append(problems, problem{field: "--" + flag, message: fmt.Sprintf(format, args...)})
	}
	for _, key := range slices.Sorted(maps.Keys(f.NodeLabels)) {
		value := f.NodeLabels[key]
		if errs := content.IsQualifiedName(key); len(errs) > 0 {
			addf("node-labels", "key %q: %s", key, strings.Join(errs, "; "))
		} else if isKubernetesLabel(key) && !apis.IsKubeletLabel(key) {
			addf("node-labels", "%s is not a label that a node may give itself: in the kubernetes.io and k8s.io namespaces these are the ones below %s, and %s",
				key, strings.Join(apis.KubeletLabelNamespaces(), " and "), strings.Join(apis.KubeletLabels(), ", "))
		}
		if errs := content.IsValidLabelValue(value); len(errs) > 0 {
			addf("node-labels", "value %q of %s: %s", value, key, strings.Join(errs, "; "))
		}
	}
	problems = append(problems, nodeIPs(f)...)
	if f.CloudProvider != "" && f.CloudProvider != "external" {
		addf("cloud-provider", "%q must be external or empty", f.CloudProvider)
	}
	if f.ExitOnLockContention && f.LockFile == "" {
		addf("exit-on-lock-contention", "needs --lock-file")
	}
	if (f.ImageCredentialProviderConfig == "") != (f.ImageCredentialProviderBinDir == "") {
		addf("image-credential-provider-config", "and --image-credential-provider-bin-dir must be given together")
	}
	return problems
}

// nodeIPs checks --node-ip. The kubelet ignores what is not an IP address.
func nodeIPs(f *Flags) (problems []problem) {
	const flag = "--node-ip"
	_, invalid, err := NodeIPs(f)
	for _, text := range invalid {
		problems = append(problems, problem{field: flag, message: fmt.Sprintf("%q is not an IP address", text), class: ignoredValue})
	}
	if err != nil {
		problems = append(problems, problem{field: flag, message: fmt.Sprintf("%q %s", f.NodeIP, err)})
	}
	return problems
}

// isKubernetesLabel reports whether the key is in a namespace of Kubernetes.
func isKubernetesLabel(key string) bool {
	namespace, _, found := strings.Cut(key, "/")
	return found && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(own string) bool {
		return namespace == own || strings.HasSuffix(namespace, "."+own)
	})
}

// securityNotices returns notices for insecure or inconsistent settings, which are applied.
func securityNotices(kc *kubelet.KubeletConfiguration) (notices []string) {
	if *kc.Authentication.Anonymous.Enabled && kc.Authorization.Mode == kubelet.KubeletAuthorizationModeAlwaysAllow {
		notices = append(notices, fmt.Sprintf("anyone who reaches port %d may do anything, running commands in pods included: anonymous requests are on and authorization is AlwaysAllow", kc.Port))
	}
	if kc.ReadOnlyPort != 0 {
		notices = append(notices, fmt.Sprintf("anyone who reaches port %d may read this node's pods and metrics: readOnlyPort is set", kc.ReadOnlyPort))
	}
	if kc.KubeletCgroups != "" && kc.KubeReservedCgroup != "" && !strings.HasPrefix(kc.KubeletCgroups, kc.KubeReservedCgroup) {
		notices = append(notices, "kubeletCgroups is not within kubeReservedCgroup")
	}
	return notices
}

// SeccompDefault reports whether containers without a seccomp profile get RuntimeDefault. Either the
// flag or the field enables it.
func (c *Config) SeccompDefault() bool {
	return c.Flags.SeccompDefault || *c.Kubelet.SeccompDefault
}

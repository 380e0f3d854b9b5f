package config

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	content "k8s.io/apimachinery/pkg/util/validation"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-helpers/node/util/sysctl"
	netutils "k8s.io/utils/net"
)

// rules are the checks that are not rows of a table. They are independent of each other, and each
// reports all its problems.
var rules = []func(*validation){
	imageThresholds, imagePulls, imageAllowlist,
	shutdownPeriods, podSysctls, taints, runOnce,
	addresses, dnsServers, tlsOptions, logDir, logQuery, logModules, tracing,
	enforcement, reservedCPUs, reservedMemory, reservations, throttling, userNamespaces, systemCgroups,
	logSize, evictionThresholds, evictionPeriods, evictionReclaims,
}

func imageThresholds(v *validation) {
	low, high := *v.kc.ImageGCLowThresholdPercent, *v.kc.ImageGCHighThresholdPercent
	if low >= high {
		v.addf("imageGCLowThresholdPercent", "%d must be less than imageGCHighThresholdPercent, which is %d", low, high)
	}
	maximum, minimum := v.kc.ImageMaximumGCAge.Duration, v.kc.ImageMinimumGCAge.Duration
	if maximum > 0 && maximum <= minimum {
		v.addf("imageMaximumGCAge", "%s must be greater than imageMinimumGCAge, which is %s", maximum, minimum)
	}
}

func imagePulls(v *validation) {
	if n := v.kc.MaxParallelImagePulls; *v.kc.SerializeImagePulls && n != nil && *n > 1 {
		v.addf("maxParallelImagePulls", "%d needs serializeImagePulls to be false", *n)
	}
}

func imageAllowlist(v *validation) {
	list := v.kc.PreloadedImagesVerificationAllowlist
	if len(list) > 0 && v.kc.ImagePullCredentialsVerificationPolicy != "NeverVerifyAllowlistedImages" {
		v.addf("preloadedImagesVerificationAllowlist", "needs imagePullCredentialsVerificationPolicy to be NeverVerifyAllowlistedImages")
		return
	}
	for i, pattern := range list {
		if message := imagePatternProblem(pattern); message != "" {
			v.addf(fmt.Sprintf("preloadedImagesVerificationAllowlist[%d]", i), "%q %s", pattern, message)
		}
	}
}

func imagePatternProblem(pattern string) string {
	prefix, wildcard := strings.CutSuffix(pattern, "/*")
	switch {
	case strings.TrimSpace(pattern) != pattern:
		return "begins or ends with a space"
	case prefix == "":
		return "must name a registry at least"
	case strings.Contains(prefix, "*"):
		return "may have a * only at the end, after a slash"
	case wildcard:
		return ""
	}
	named, err := reference.ParseNormalizedNamed(pattern)
	if err != nil {
		return "is not the name of an image"
	}
	if !reference.IsNameOnly(named) {
		return "must have neither tag nor digest"
	}
	return ""
}

func shutdownPeriods(v *validation) {
	total, critical := v.kc.ShutdownGracePeriod.Duration, v.kc.ShutdownGracePeriodCriticalPods.Duration
	if critical > total {
		v.addf("shutdownGracePeriodCriticalPods", "%s must not be greater than shutdownGracePeriod, which is %s", critical, total)
	}
	if len(v.kc.ShutdownGracePeriodByPodPriority) > 0 && (total > 0 || critical > 0) {
		v.addf("shutdownGracePeriodByPodPriority", "cannot be given together with shutdownGracePeriod")
	}
}

var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

func podSysctls(v *validation) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(v.kc.DefaultPodSysctls)) {
		field := "defaultPodSysctls." + name
		normal := sysctl.NormalizeName(name)
		namespace, _, _ := sysctl.GetNamespace(name)
		switch {
		case len(name) > 253 || !sysctlName.MatchString(name):
			v.addf(field, "is not the name of a sysctl")
			continue
		case namespace == sysctl.UnknownNamespace:
			v.addf(field, "is not a namespaced sysctl")
		case seen[normal]:
			v.addf(field, "is given twice, once with dots and once with slashes")
		}
		seen[normal] = true
	}
}

func taints(v *validation) {
	for i, t := range v.kc.RegisterWithTaints {
		field := fmt.Sprintf("registerWithTaints[%d]", i)
		if message := taintProblem(t); message != "" {
			v.addf(field, "%s", message)
		}
		if t.TimeAdded != nil {
			v.addf(field+".timeAdded", "must not be set")
		}
	}
}

// taintProblem returns a message if the taint is invalid. A taint of the configuration file may omit
// the effect.
func taintProblem(t v1.Taint) string {
	if errs := content.IsQualifiedName(t.Key); len(errs) > 0 {
		return fmt.Sprintf("key %q: %s", t.Key, strings.Join(errs, "; "))
	}
	if errs := content.IsValidLabelValue(t.Value); len(errs) > 0 {
		return fmt.Sprintf("value %q: %s", t.Value, strings.Join(errs, "; "))
	}
	switch t.Effect {
	case "", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule, v1.TaintEffectNoExecute:
		return ""
	}
	return fmt.Sprintf("effect %q must be one of NoSchedule, PreferNoSchedule, NoExecute", t.Effect)
}

func runOnce(v *validation) {
	if v.kc.RunOnce {
		v.addf("runOnce", "is no longer possible")
	}
}

func addresses(v *validation) {
	for field, address := range map[string]string{"address": v.kc.Address, "healthzBindAddress": v.kc.HealthzBindAddress} {
		if netutils.ParseIPSloppy(address) == nil {
			v.addf(field, "%q is not an IP address", address)
		}
	}
}

// dnsServers checks clusterDNS. The kubelet ignores what is not an IP address.
func dnsServers(v *validation) {
	for i, server := range v.kc.ClusterDNS {
		if netutils.ParseIPSloppy(server) == nil {
			v.problems = append(v.problems, problem{
				field: fmt.Sprintf("clusterDNS[%d]", i), message: fmt.Sprintf("%q is not an IP address", server), class: ignoredValue,
			})
		}
	}
}

func tlsOptions(v *validation) {
	if _, err := cliflag.TLSCipherSuites(v.kc.TLSCipherSuites); err != nil {
		v.addf("tlsCipherSuites", "%s", err)
	}
	if _, err := cliflag.TLSVersion(v.kc.TLSMinVersion); err != nil {
		v.addf("tlsMinVersion", "%q must be one of %s", v.kc.TLSMinVersion, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	if _, err := cliflag.TLSCurvePreferences(v.kc.TLSCurvePreferences); err != nil {
		v.addf("tlsCurvePreferences", "%s", err)
	}
	switch cert, key := v.kc.TLSCertFile, v.kc.TLSPrivateKeyFile; {
	case cert != "" && key == "":
		v.addf("tlsCertFile", "needs tlsPrivateKeyFile")
	case cert == "" && key != "":
		v.addf("tlsPrivateKeyFile", "needs tlsCertFile")
	}
}

func logDir(v *validation) {
	dir := v.kc.PodLogsDir
	switch {
	case !filepath.IsAbs(dir):
		v.addf("podLogsDir", "%q must be an absolute path", dir)
	case filepath.Clean(dir) != dir:
		v.addf("podLogsDir", "%q must be written as %s", dir, filepath.Clean(dir))
	case strings.ContainsFunc(dir, func(r rune) bool { return r > unicode.MaxASCII }):
		v.addf("podLogsDir", "%q must be ASCII, because it becomes part of metrics", dir)
	}
}

func logQuery(v *validation) {
	if *v.kc.EnableSystemLogQuery && !*v.kc.EnableSystemLogHandler {
		v.addf("enableSystemLogQuery", "needs enableSystemLogHandler")
	}
}

func logModules(v *validation) {
	modules := v.kc.Logging.VModule
	if len(modules) > 0 && v.kc.Logging.Format != "text" {
		v.addf("logging.vmodule", "works with the text format only")
	}
	for i, m := range modules {
		if field := fmt.Sprintf("logging.vmodule[%d]", i); m.FilePattern == "" || strings.ContainsAny(m.FilePattern, "=,") {
			v.addf(field, "filePattern %q must be neither empty nor contain = or ,", m.FilePattern)
		} else if m.Verbosity > math.MaxInt32 {
			v.addf(field, "verbosity %d is too great", m.Verbosity)
		}
	}
}

func tracing(v *validation) {
	if v.kc.Tracing == nil || v.kc.Tracing.Endpoint == nil {
		return
	}
	endpoint := *v.kc.Tracing.Endpoint
	if !strings.Contains(endpoint, "//") {
		endpoint = "dns://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || !slices.Contains([]string{"dns", "unix", "unix-abstract"}, u.Scheme) {
		v.addf("tracing.endpoint", "%q must be host:port, dns:, unix: or unix-abstract:", *v.kc.Tracing.Endpoint)
	}
}

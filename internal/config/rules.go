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

// rules are the checks that need more than a row of a table. Each is independent of the
// others, and says everything it finds.
var rules = []func(*validation){
	imageThresholds, imagePulls, imageAllowlist,
	shutdownPeriods, podSysctls, taints, runOnce,
	addresses, tlsOptions, logDir, logQuery, logModules, tracing,
	enforcement, reservedCPUs, reservedMemory, reservations, throttling, userNamespaces, systemCgroups,
	logSize, evictionThresholds, evictionPeriods, evictionReclaims,
}

func imageThresholds(v *validation) {
	low, high := *v.kc.ImageGCLowThresholdPercent, *v.kc.ImageGCHighThresholdPercent
	if low >= high {
		v.say("imageGCLowThresholdPercent", "%d must be less than imageGCHighThresholdPercent, which is %d", low, high)
	}
	oldest, youngest := v.kc.ImageMaximumGCAge.Duration, v.kc.ImageMinimumGCAge.Duration
	if oldest > 0 && oldest <= youngest {
		v.say("imageMaximumGCAge", "%s must be greater than imageMinimumGCAge, which is %s", oldest, youngest)
	}
}

func imagePulls(v *validation) {
	if n := v.kc.MaxParallelImagePulls; *v.kc.SerializeImagePulls && n != nil && *n > 1 {
		v.say("maxParallelImagePulls", "%d needs serializeImagePulls to be false", *n)
	}
}

func imageAllowlist(v *validation) {
	list := v.kc.PreloadedImagesVerificationAllowlist
	if len(list) > 0 && v.kc.ImagePullCredentialsVerificationPolicy != "NeverVerifyAllowlistedImages" {
		v.say("preloadedImagesVerificationAllowlist", "needs imagePullCredentialsVerificationPolicy to be NeverVerifyAllowlistedImages")
		return
	}
	for i, pattern := range list {
		if what := wrongImagePattern(pattern); what != "" {
			v.say(fmt.Sprintf("preloadedImagesVerificationAllowlist[%d]", i), "%q %s", pattern, what)
		}
	}
}

func wrongImagePattern(pattern string) string {
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
	all, critical := v.kc.ShutdownGracePeriod.Duration, v.kc.ShutdownGracePeriodCriticalPods.Duration
	if critical > all {
		v.say("shutdownGracePeriodCriticalPods", "%s must not be greater than shutdownGracePeriod, which is %s", critical, all)
	}
	if len(v.kc.ShutdownGracePeriodByPodPriority) > 0 && (all > 0 || critical > 0) {
		v.say("shutdownGracePeriodByPodPriority", "cannot be given together with shutdownGracePeriod")
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
			v.say(field, "is not the name of a sysctl")
			continue
		case namespace == sysctl.UnknownNamespace:
			v.say(field, "is not known to be of a pod rather than of the whole host")
		case seen[normal]:
			v.say(field, "is given twice, once with dots and once with slashes")
		}
		seen[normal] = true
	}
}

func taints(v *validation) {
	for i, t := range v.kc.RegisterWithTaints {
		field := fmt.Sprintf("registerWithTaints[%d]", i)
		if what := wrongTaint(t); what != "" {
			v.say(field, "%s", what)
		}
		if t.TimeAdded != nil {
			v.say(field+".timeAdded", "must not be set")
		}
	}
}

// wrongTaint says what is wrong with a taint, or nothing. A taint of the configuration
// file may lack the effect.
func wrongTaint(t v1.Taint) string {
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
		v.say("runOnce", "is no longer possible")
	}
}

func addresses(v *validation) {
	for field, address := range map[string]string{"address": v.kc.Address, "healthzBindAddress": v.kc.HealthzBindAddress} {
		if netutils.ParseIPSloppy(address) == nil {
			v.say(field, "%q is not an IP address", address)
		}
	}
}

func tlsOptions(v *validation) {
	if _, err := cliflag.TLSCipherSuites(v.kc.TLSCipherSuites); err != nil {
		v.say("tlsCipherSuites", "%s", err)
	}
	if _, err := cliflag.TLSVersion(v.kc.TLSMinVersion); err != nil {
		v.say("tlsMinVersion", "%q must be one of %s", v.kc.TLSMinVersion, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	if _, err := cliflag.TLSCurvePreferences(v.kc.TLSCurvePreferences); err != nil {
		v.say("tlsCurvePreferences", "%s", err)
	}
	switch cert, key := v.kc.TLSCertFile, v.kc.TLSPrivateKeyFile; {
	case cert != "" && key == "":
		v.say("tlsCertFile", "needs tlsPrivateKeyFile")
	case cert == "" && key != "":
		v.say("tlsPrivateKeyFile", "needs tlsCertFile")
	}
}

func logDir(v *validation) {
	dir := v.kc.PodLogsDir
	switch {
	case !filepath.IsAbs(dir):
		v.say("podLogsDir", "%q must be an absolute path", dir)
	case filepath.Clean(dir) != dir:
		v.say("podLogsDir", "%q must be written as %s", dir, filepath.Clean(dir))
	case strings.ContainsFunc(dir, func(r rune) bool { return r > unicode.MaxASCII }):
		v.say("podLogsDir", "%q must be ASCII, because it becomes part of metrics", dir)
	}
}

func logQuery(v *validation) {
	if *v.kc.EnableSystemLogQuery && !*v.kc.EnableSystemLogHandler {
		v.say("enableSystemLogQuery", "needs enableSystemLogHandler")
	}
}

func logModules(v *validation) {
	modules := v.kc.Logging.VModule
	if len(modules) > 0 && v.kc.Logging.Format != "text" {
		v.say("logging.vmodule", "works with the text format only")
	}
	for i, m := range modules {
		if field := fmt.Sprintf("logging.vmodule[%d]", i); m.FilePattern == "" || strings.ContainsAny(m.FilePattern, "=,") {
			v.say(field, "filePattern %q must be neither empty nor contain = or ,", m.FilePattern)
		} else if m.Verbosity > math.MaxInt32 {
			v.say(field, "verbosity %d is too great", m.Verbosity)
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
		v.say("tracing.endpoint", "%q must be host:port, dns:, unix: or unix-abstract:", *v.kc.Tracing.Endpoint)
	}
}

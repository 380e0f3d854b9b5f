package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// validate checks a complete configuration by the rules of the reference kubelet, including those
// that the reference kubelet checks only during startup.
func validate(kc *kubelet.KubeletConfiguration, g gates) (problems []problem) {
	v := &validation{kc: kc, gates: g}
	var err error
	if v.values, err = toValues(kc); err != nil {
		return []problem{{message: err.Error()}}
	}
	v.numbers()
	v.durations()
	v.choices()
	v.neededGates()
	for _, rule := range rules {
		rule(v)
	}
	return v.problems
}

// validation is one run of the rules. It looks values up by field path, so that a rule can be a row
// of a table.
type validation struct {
	kc       *kubelet.KubeletConfiguration
	gates    gates
	values   map[string]any
	problems []problem
}

func (v *validation) addf(field, format string, args ...any) {
	v.problems = append(v.problems, problem{field: field, message: fmt.Sprintf(format, args...)})
}

// at returns the value at a field path, or nil if it is unset or omitted as zero.
func (v *validation) at(field string) any { return valueAt(v.values, field) }

func valueAt(values map[string]any, field string) any {
	var value any = values
	for name := range strings.SplitSeq(field, ".") {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[name]
	}
	return value
}

const noLimit = math.MaxInt64

// numberRules are the inclusive ranges of numbers.
var numberRules = []struct {
	field    string
	min, max int64
}{
	{"port", 1, 65535},
	{"readOnlyPort", 0, 65535},
	{"healthzPort", 0, 65535},
	{"eventRecordQPS", 0, noLimit},
	{"eventBurst", 0, noLimit},
	{"kubeAPIQPS", 0, noLimit},
	{"kubeAPIBurst", 0, noLimit},
	{"registryPullQPS", 0, noLimit},
	{"registryBurst", 0, noLimit},
	{"maxParallelImagePulls", 1, noLimit},
	{"imageGCHighThresholdPercent", 0, 100},
	{"imageGCLowThresholdPercent", 0, 100},
	{"nodeLeaseDurationSeconds", 1, noLimit},
	{"nodeStatusMaxImages", -1, noLimit},
	{"maxPods", 0, noLimit},
	{"podsPerCore", 0, noLimit},
	{"maxOpenFiles", 0, noLimit},
	{"oomScoreAdj", -1000, 1000},
	{"iptablesMasqueradeBit", 0, 31},
	{"iptablesDropBit", 0, 31},
	{"containerLogMaxFiles", 2, noLimit},
	{"containerLogMaxWorkers", 1, noLimit},
	{"logging.verbosity", 0, math.MaxInt32},
	{"tracing.samplingRatePerMillion", 0, 1_000_000},
}

func (v *validation) numbers() {
	for _, r := range numberRules {
		number, ok := v.at(r.field).(json.Number)
		if !ok {
			continue
		}
		n, err := number.Int64()
		switch {
		case err == nil && n >= r.min && n <= r.max:
		case r.max == noLimit:
			v.addf(r.field, "%s must be at least %d", number, r.min)
		default:
			v.addf(r.field, "%s must be between %d and %d", number, r.min, r.max)
		}
	}
}

// durationRules are the inclusive ranges of durations. allowZero allows zero too, which disables the
// feature.
var durationRules = []struct {
	field     string
	min, max  time.Duration
	allowZero bool
}{
	{"cpuCFSQuotaPeriod", time.Millisecond, time.Second, false},
	{"crashLoopBackOff.maxContainerRestartPeriod", time.Second, 300 * time.Second, false},
	{"containerLogMonitorInterval", 3 * time.Second, noLimit, false},
	{"fileCheckFrequency", 1, noLimit, false},
	{"httpCheckFrequency", 1, noLimit, false},
	{"imageMinimumGCAge", 0, noLimit, false},
	{"imageMaximumGCAge", 0, noLimit, false},
	{"logging.flushFrequency", 1, noLimit, false},
	{"nodeStatusReportFrequency", 1, noLimit, false},
	{"nodeStatusUpdateFrequency", 1, noLimit, false},
	{"runtimeRequestTimeout", 1, noLimit, false},
	{"shutdownGracePeriod", time.Second, noLimit, true},
	{"shutdownGracePeriodCriticalPods", time.Second, noLimit, true},
}

func (v *validation) durations() {
	for _, r := range durationRules {
		text, _ := v.at(r.field).(string)
		d, err := time.ParseDuration(text)
		switch {
		case text == "", err == nil && d >= r.min && d <= r.max, r.allowZero && d == 0:
		case r.max != noLimit:
			v.addf(r.field, "%s must be between %s and %s", text, r.min, r.max)
		case r.allowZero:
			v.addf(r.field, "%s must be 0 or at least %s", text, r.min)
		default:
			v.addf(r.field, "%s must be at least %s", text, r.min)
		}
	}
}

// choiceRules are the valid values of enumerations.
var choiceRules = []struct {
	field  string
	values []string
}{
	{"authorization.mode", []string{"AlwaysAllow", "Webhook"}},
	{"cgroupDriver", []string{"cgroupfs", "systemd"}},
	{"configMapAndSecretChangeDetectionStrategy", []string{"Get", "Cache", "Watch"}},
	{"cpuManagerPolicy", []string{"none", "static"}},
	{"hairpinMode", []string{"none", "hairpin-veth", "promiscuous-bridge"}},
	{"imagePullCredentialsVerificationPolicy", []string{"NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"}},
	{"logging.format", []string{"text", "json"}},
	{"memoryManagerPolicy", []string{"None", "Static"}},
	{"memoryReservationPolicy", []string{"None", "TieredReservation"}},
	{"memorySwap.swapBehavior", []string{"", "NoSwap", "LimitedSwap"}},
	{"showHiddenMetricsForVersion", []string{"", "1.36"}},
	{"topologyManagerPolicy", []string{"none", "best-effort", "restricted", "single-numa-node"}},
	{"topologyManagerScope", []string{"container", "pod"}},
}

func (v *validation) choices() {
	for _, r := range choiceRules {
		value, set := v.at(r.field).(string)
		if set && !slices.Contains(r.values, value) {
			v.addf(r.field, "%q must be one of %s", value, strings.Join(slices.DeleteFunc(slices.Clone(r.values), func(w string) bool { return w == "" }), ", "))
		}
	}
}

// gateRules are the gates that fields need. A field needs its gate if it is set to a value other than
// unused.
var gateRules = []struct {
	field, gate string
	unused      string // as JSON
}{
	{"cpuCFSQuotaPeriod", "CustomCPUCFSQuotaPeriod", `"100ms"`},
	{"crashLoopBackOff.maxContainerRestartPeriod", "KubeletCrashLoopBackOffMax", ""},
	{"defaultPodSysctls", "DefaultPodSysctls", ""},
	{"imagePullCredentialsVerificationPolicy", "KubeletEnsureSecretPulledImages", ""},
	{"preloadedImagesVerificationAllowlist", "KubeletEnsureSecretPulledImages", ""},
	{"logging.format", "LoggingBetaOptions", `"text"`},
	{"logging.options.text.splitStream", "LoggingAlphaOptions", ""},
	{"logging.options.text.infoBufferSize", "LoggingAlphaOptions", `"0"`},
	{"logging.options.json.splitStream", "LoggingAlphaOptions", ""},
	{"logging.options.json.infoBufferSize", "LoggingAlphaOptions", `"0"`},
	{"memoryReservationPolicy", "MemoryQoS", `"None"`},
	{"memoryThrottlingFactor", "MemoryQoS", "0.9"}, // a former default, which old files contain
	{"serverTLSBootstrap", "RotateKubeletServerCertificate", ""},
	{"shutdownGracePeriod", "GracefulNodeShutdown", `"0s"`},
	{"shutdownGracePeriodCriticalPods", "GracefulNodeShutdown", `"0s"`},
	{"shutdownGracePeriodByPodPriority", "GracefulNodeShutdownBasedOnPodPriority", ""},
}

func (v *validation) neededGates() {
	for _, r := range gateRules {
		value := v.at(r.field)
		if value != nil && jsonText(value) != r.unused && !v.gates[r.gate] {
			v.addf(r.field, "needs feature gate %s", r.gate)
		}
	}
}

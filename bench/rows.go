package bench

// Names of the subjects.
const (
	Bare      = "bare"
	Reference = "reference"
	Ours      = "ours"
)

// Row is a line of the table.
type Row struct {
	ID    string
	Title string
	Unit  string // s, ms, core, core-s, MB, KB or a word for what is counted
	Goal  *Goal
	Front bool // README shows it
}

// rows is the table, in the order of the report.
var rows = []Row{
	{"start_one", "create → Ready, one pod", "s", atMostTimes(1.10, Bare), true},
	{"start_60", "60 pods created at once, all Ready", "s", atMostTimes(1.2, Bare), true},
	{"start_60_machine_cpu", "machine CPU for that", "core-s", atMost(16), true},
	{"start_60_agent_cpu", "agent CPU for that", "core-s", atMost(0.35), false},
	{"start_60_api_cpu", "API server CPU for that", "core-s", atMost(0.9), false},
	{"start_200", "200 pods created at once, all Ready", "s", nil, true},
	{"start_200_machine_cpu", "machine CPU for that", "core-s", nil, false},
	{"start_200_agent_cpu", "agent CPU for that", "core-s", nil, false},
	{"start_200_api_cpu", "API server CPU for that", "core-s", nil, false},
	{"start_containers_5", "create → Ready, a pod of 5 containers", "s", nil, false},
	{"start_init_3", "create → Ready, a pod with 3 init containers", "s", nil, false},
	{"delete_one", "delete → gone, one pod", "s", keep(0.2, Reference), true},
	{"delete_60", "60 pods deleted at once, all gone", "s", atMostTimes(1.1, Bare), true},
	{"delete_200", "200 pods deleted at once, all gone", "s", nil, false},
	{"crash", "crash → running again", "s", keep(0.25, Reference), true},
	{"configmap", "ConfigMap change → file", "s", keep(0.02, Reference), true},
	{"readiness", "readiness probe answered → status in the API", "ms", nil, true},
	{"static", "static manifest → mirror pod Ready", "s", nil, false},
	{"exec", "exec round trip", "ms", nil, false},

	{"first_pod", "process start → first pod Ready", "s", nil, false},
	{"restart_200", "process start → a waiting pod Ready, 200 pods running", "s", nil, true},
	{"restart_200_agent_cpu", "agent CPU for that", "core-s", nil, false},

	{"idle_cpu_0", "idle CPU, no pods", "core", nil, false},
	{"idle_cpu_60", "idle CPU, 60 pods", "core", keep(0.05, Reference), true},
	{"idle_cpu_200", "idle CPU, 200 pods", "core", nil, false},
	{"idle_wakeups_0", "wake-ups a second, no pods", "1/s", nil, false},
	{"idle_wakeups_60", "wake-ups a second, 60 pods", "1/s", nil, false},
	{"idle_wakeups_200", "wake-ups a second, 200 pods", "1/s", nil, false},
	{"rss_0", "resident memory, no pods", "MB", nil, false},
	{"rss_60", "resident memory, 60 pods", "MB", atMost(40), true},
	{"rss_200", "resident memory, 200 pods", "MB", nil, false},
	{"anon_0", "anonymous memory, no pods", "MB", atMost(12), false},
	{"anon_60", "anonymous memory, 60 pods", "MB", nil, false},
	{"anon_200", "anonymous memory, 200 pods", "MB", atMost(22), true},
	{"file_60", "resident pages of files, 60 pods", "MB", nil, false},
	{"binary", "binary, stripped", "MB", atMost(38), true},

	{"probes_exec_agent_cpu", "200 exec probes with a period of 1 s: agent CPU", "core", nil, false},
	{"probes_exec_runtime_cpu", "… CPU of runtime and containers", "core", nil, false},
	{"probes_exec_rate", "… probes a second", "1/s", nil, false},
	{"probes_exec_agent_each", "… agent CPU of one probe", "ms", nil, true},
	{"probes_exec_runtime_each", "… CPU of runtime and container of one probe", "ms", nil, false},
	{"probes_http_agent_cpu", "200 HTTP probes with a period of 1 s: agent CPU", "core", nil, true},
	{"probes_http_runtime_cpu", "… CPU of runtime and containers", "core", nil, false},
	{"probes_http_rate", "… probes a second", "1/s", nil, false},

	{"scrape_metrics_time", "/metrics, 200 pods: time", "ms", nil, false},
	{"scrape_metrics_size", "… size", "KB", nil, false},
	{"scrape_metrics_cpu", "… agent CPU", "ms", nil, false},
	{"scrape_cadvisor_time", "/metrics/cadvisor, 200 pods: time", "ms", nil, false},
	{"scrape_cadvisor_size", "… size", "KB", nil, false},
	{"scrape_cadvisor_cpu", "… agent CPU", "ms", nil, false},
	{"scrape_resource_time", "/metrics/resource, 200 pods: time", "ms", nil, false},
	{"scrape_resource_size", "… size", "KB", nil, false},
	{"scrape_resource_cpu", "… agent CPU", "ms", nil, false},
	{"scrape_probes_time", "/metrics/probes, 200 pods: time", "ms", nil, false},
	{"scrape_probes_size", "… size", "KB", nil, false},
	{"scrape_probes_cpu", "… agent CPU", "ms", nil, false},
	{"scrape_summary_time", "/stats/summary, 200 pods: time", "ms", nil, false},
	{"scrape_summary_size", "… size", "KB", nil, false},
	{"scrape_summary_cpu", "… agent CPU", "ms", nil, false},

	{"log_rate", "container writes logs as fast as it can: rate", "MB/s", nil, false},
	{"log_lost", "… lines lost in rotations", "lines", nil, false},
	{"log_agent_cpu", "… agent CPU for 1 GB", "core-s", nil, false},

	{"cri_calls_idle", "CRI calls a minute, idle, 20 pods", "calls", nil, false},
	{"cri_calls_start", "CRI calls of a pod start", "calls", nil, false},
	{"cri_calls_delete", "CRI calls of a pod deletion", "calls", nil, false},
	{"api_calls_idle", "API calls a minute, idle, 20 pods", "calls", nil, false},
	{"api_calls_start", "API calls of a pod start", "calls", nil, false},
	{"api_calls_delete", "API calls of a pod deletion", "calls", nil, false},
}

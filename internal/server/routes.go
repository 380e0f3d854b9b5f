package server

import "slices"

// routeTable lists every endpoint of the HTTPS API and of the read-only port.
func (s *Server) routeTable() []route {
	kc := s.cfg.Kubelet
	var (
		allocatedPods = toggle{on: s.cfg.AllocatedPods}
		checkpoints   = toggle{on: s.cfg.Checkpoints}
		flagz         = toggle{on: s.cfg.Flagz}
		statusz       = toggle{on: s.cfg.Statusz}
		systemLogs    = toggle{*kc.EnableSystemLogHandler, "logs endpoint is disabled."}
		profiling     = toggle{*kc.EnableProfilingHandler, "profiling endpoint is disabled."}
		explains      = toggle{on: s.deps.Why != nil}
		page          = toggle{on: s.deps.Page != nil}
		links         = toggle{on: s.deps.Page != nil && s.deps.Sessions != nil}
		debugFlags    = toggle{*kc.EnableDebugFlagsHandler, "flags endpoint is disabled."}
	)
	return slices.Concat(s.healthRoutes(append([]Check{ping, logCheck}, s.deps.Checks...)), []route{
		// path, methods, subresources, traits, enabled, handler
		{"/pods", get, "pods proxy", readOnlyPort, always, s.pods},
		{"/pods/{$}", get, "pods proxy", readOnlyPort, always, s.pods},
		{"/why", get, "pods proxy", unlabelled, explains, s.whyNode},
		{"/why/{$}", get, "pods proxy", unlabelled, explains, s.whyNode},
		{"/why/{namespace}/{pod}", get, "pods proxy", unlabelled, explains, s.whyPod},
		// The page opens exec, so its routes need the same subresource.
		{"/ui", get, "proxy", unlabelled, page, s.page},
		{"/ui/{$}", get, "proxy", unlabelled, page, s.page},
		{"/ui/assets/{name}", get, "proxy", unlabelled, page, s.page},
		{"/ui/api/stream", get, "proxy", unlabelled, page, s.page},
		{"/ui/api/history", get, "proxy", unlabelled, page, s.page},
		{"/ui/api/pods/{namespace}/{pod}", get, "proxy", unlabelled, page, s.page},
		{"/ui/link", post, "proxy", unlabelled, links, s.link},
		{"/stats/summary", getOrPost, "stats", readOnlyPort, always, s.summary},
		{"/stats/summary/{$}", getOrPost, "stats", readOnlyPort, always, s.summary},
		{"/metrics", nil, "metrics", readOnlyPort, always, s.metricsHandler(s.deps.Metrics)},
		{"/metrics/cadvisor", nil, "metrics", readOnlyPort, always, s.metricsText(s.deps.Stats.WriteCadvisor)},
		{"/metrics/probes", nil, "metrics", readOnlyPort, always, s.metricsHandler(s.deps.ProbeMetrics)},
		{"/metrics/resource", nil, "metrics", readOnlyPort, always, s.metricsText(s.deps.Stats.WriteResource)},
		{"/metrics/slis", nil, "metrics", readOnlyPort | unlabelled, always, s.slis},

		{"/runningpods/{$}", get, "pods proxy", debugging | explained, always, s.runningPods},
		{"/allocatedPods", get, "pods proxy", debugging, allocatedPods, s.allocatedPods},
		{"/allocatedPods/{$}", get, "pods proxy", debugging, allocatedPods, s.allocatedPods},
		{"/allocatedPods/{namespace}/{pod}", get, "pods proxy", debugging, allocatedPods, s.allocatedPod},
		{"/allocatedPods/{namespace}/{pod}/{uid}", get, "pods proxy", debugging, allocatedPods, s.allocatedPod},
		{"/checkpoint/{namespace}/{pod}/{container}", post, "checkpoint", debugging, checkpoints, s.checkpoint},

		{"/containerLogs/{namespace}/{pod}/{container}", get, "proxy", debugging | explained, always, s.containerLogs},
		{"/exec/{namespace}/{pod}/{container}", getOrPost, "proxy", debugging | explained | longRunning, always, s.exec},
		{"/exec/{namespace}/{pod}/{uid}/{container}", getOrPost, "proxy", debugging | explained | longRunning, always, s.exec},
		{"/attach/{namespace}/{pod}/{container}", getOrPost, "proxy", debugging | explained | longRunning, always, s.attach},
		{"/attach/{namespace}/{pod}/{uid}/{container}", getOrPost, "proxy", debugging | explained | longRunning, always, s.attach},
		// The reference kubelet does not count port forwards as long-running.
		{"/portForward/{namespace}/{pod}", getOrPost, "proxy", debugging | explained, always, s.portForward},
		{"/portForward/{namespace}/{pod}/{uid}", getOrPost, "proxy", debugging | explained, always, s.portForward},
		{"/run/{namespace}/{pod}/{container}", post, "proxy", debugging | explained, always, s.run},
		{"/run/{namespace}/{pod}/{uid}/{container}", post, "proxy", debugging | explained, always, s.run},

		{"/configz", nil, "configz proxy", debugging, always, s.configz},
		{"/flagz", nil, "configz", debugging, flagz, s.flagz},
		{"/statusz", nil, "statusz", debugging, statusz, s.statusz},
		{"/logs/", get, "log", debugging | explained, systemLogs, s.systemLogs().ServeHTTP},
		{pprofPath, get, "proxy", debugging | explained | longRunning, profiling, profile},
		{"/debug/flags/v", nil, "proxy", debugging | longRunning, debugFlags, s.verbosity},
	})
}

// apiRoutes are the routes of the HTTPS API, all of which need authorization.
func (s *Server) apiRoutes() []route {
	return selectRoutes(s.routes, func(t trait) bool { return *s.cfg.Kubelet.EnableDebuggingHandlers || !t.has(debugging) })
}

// readOnlyRoutes are the routes of the read-only port, which authenticates no client.
func (s *Server) readOnlyRoutes() []route {
	return selectRoutes(s.routes, func(t trait) bool { return t.has(readOnlyPort) })
}

// Written by lab/cmd/contentgen from cmd/vllmctl/content. Do not edit: run "make generate".
{
  _config+:: {
    // Matchers for each series except the collector's own, for example 'k8s_cluster_name="prod"'. Servers, pools
    // and the gateway must all have these labels: they have different jobs.
    selector: '',
    runbookBase: 'https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/',
    // The number of servers below which VLLMTooFewServers fires.
    serversExpected: 1,
    // The share of a pool's users at a replica that does not serve them from which on it pages.
    replicaShare: 0.05,
    // The burn rate over 1h and 5m that pages.
    burnFast: 14.4,
    // The burn rate over 6h and 30m that pages.
    burnMedium: 6,
    // The burn rate over 1d and 2h that opens a ticket.
    burnSlow: 3,
    // The burn rate over 3d and 6h that opens a ticket.
    burnLeak: 1,
    // The share of missed events that is enough for each alert on burn rates, for targets that make its burn rate unreachable.
    errorRatioAlways: 0.9,
    // The fewest events, and the fewest requests, in 5m for the alert on the burn over 1h and 5m.
    eventsFast: 10,
    // The fewest events, and the fewest requests, in 30m for the alert on the burn over 6h and 30m.
    eventsMedium: 30,
    // The fewest events, and the fewest requests, in 2h for the alert on the burn over 1d and 2h.
    eventsSlow: 60,
    // The fewest events, and the fewest requests, in 6h for the alert on the burn over 3d and 6h.
    eventsLeak: 100,
    // The share of a window of days that must have been observed before it counts.
    coverage: 0.25,
    // The share of errors at the gateway that pages.
    gatewayErrorRatio: 0.05,
    // The fewest requests in 5m for the alerts of the gateway.
    gatewayRequests: 20,
    // The p99 of the duration of requests at the gateway, in seconds.
    gatewayLatencySeconds: 10,
    // The share of an exporter's queue that may be full.
    queueShare: 0.5,
    // The share of first tokens that must arrive within 2.5 s, for the rules on vLLM's own names.
    rawFirstTokenTarget: 0.95,
    // The p95 of the time in vLLM's queue, in seconds, for the rules on vLLM's own names.
    rawQueueSeconds: 5,
  },
  prometheusRules+:: {
    groups+: [
      {
        name: 'vllm-diagnosis.rules',
        rules: [
          {
            record: 'vllm_server:severity:max',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ( vllm_diagnosis_severity{%(selector)s} )' % $._config,
          },
          {
            record: 'vllm_server:severity_in_pool:max',
            expr: 'vllm_server:severity:max and on (k8s_cluster_name, k8s_namespace_name, model_name) vllm_pool_diagnosis_severity{%(selector)s} or vllm_server:severity:max and on (k8s_namespace_name, model_name) vllm_pool_diagnosis_severity{k8s_cluster_name="",%(selector)s} or vllm_server:severity:max and on (k8s_cluster_name, model_name) vllm_pool_diagnosis_severity{k8s_namespace_name="",%(selector)s} or vllm_server:severity:max and on (model_name) vllm_pool_diagnosis_severity{k8s_cluster_name="",k8s_namespace_name="",%(selector)s}' % $._config,
          },
          {
            record: 'vllm_config:servers:expected',
            expr: 'vector(%(serversExpected)g)' % $._config,
          },
        ],
      },
      {
        name: 'vllm-slo.rules',
        rules: [
          {
            record: 'vllm_slo:target:last1h',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( last_over_time(vllm_slo_target_ratio{%(selector)s}[1h]) )' % $._config,
          },
          {
            record: 'vllm_slo:valid:rate5m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_valid_total{%(selector)s}[5m]) )' % $._config,
          },
          {
            record: 'vllm_slo:valid:rate30m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_valid_total{%(selector)s}[30m]) )' % $._config,
          },
          {
            record: 'vllm_slo:valid:rate1h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_valid_total{%(selector)s}[1h]) )' % $._config,
          },
          {
            record: 'vllm_slo:valid:rate2h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_valid_total{%(selector)s}[2h]) )' % $._config,
          },
          {
            record: 'vllm_slo:valid:rate6h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_valid_total{%(selector)s}[6h]) )' % $._config,
          },
          {
            record: 'vllm_slo:good:rate5m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_good_total{%(selector)s}[5m]) )' % $._config,
          },
          {
            record: 'vllm_slo:good:rate30m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_good_total{%(selector)s}[30m]) )' % $._config,
          },
          {
            record: 'vllm_slo:good:rate1h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_good_total{%(selector)s}[1h]) )' % $._config,
          },
          {
            record: 'vllm_slo:good:rate2h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_good_total{%(selector)s}[2h]) )' % $._config,
          },
          {
            record: 'vllm_slo:good:rate6h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_good_total{%(selector)s}[6h]) )' % $._config,
          },
          {
            record: 'vllm_slo:undecided:rate5m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_undecided_total{%(selector)s}[5m]) )' % $._config,
          },
          {
            record: 'vllm_slo:undecided:rate30m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_undecided_total{%(selector)s}[30m]) )' % $._config,
          },
          {
            record: 'vllm_slo:undecided:rate1h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_undecided_total{%(selector)s}[1h]) )' % $._config,
          },
          {
            record: 'vllm_slo:undecided:rate2h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_undecided_total{%(selector)s}[2h]) )' % $._config,
          },
          {
            record: 'vllm_slo:undecided:rate6h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_undecided_total{%(selector)s}[6h]) )' % $._config,
          },
          {
            record: 'vllm_slo:requests:rate2h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(vllm_time_to_first_token_seconds_count{%(selector)s}[2h]) )' % $._config,
          },
          {
            record: 'vllm_slo:requests:rate30m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(vllm_time_to_first_token_seconds_count{%(selector)s}[30m]) )' % $._config,
          },
          {
            record: 'vllm_slo:requests:rate5m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(vllm_time_to_first_token_seconds_count{%(selector)s}[5m]) )' % $._config,
          },
          {
            record: 'vllm_slo:requests:rate6h',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(vllm_time_to_first_token_seconds_count{%(selector)s}[6h]) )' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate5m',
            expr: 'clamp_min(1 - (vllm_slo:good:rate5m + vllm_slo:undecided:rate5m) / (vllm_slo:valid:rate5m > 0), 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate5m',
            expr: 'clamp_min(1 - vllm_slo:good:rate5m / (vllm_slo:valid:rate5m > 0), 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_lower:rate5m',
            expr: 'vllm_slo:error_ratio_lower:rate5m / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_upper:rate5m',
            expr: 'vllm_slo:error_ratio_upper:rate5m / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate30m',
            expr: 'clamp_min( 1 - (vllm_slo:good:rate30m + vllm_slo:undecided:rate30m) / (vllm_slo:valid:rate30m > 0), 0 )' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate30m',
            expr: 'clamp_min(1 - vllm_slo:good:rate30m / (vllm_slo:valid:rate30m > 0), 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_lower:rate30m',
            expr: 'vllm_slo:error_ratio_lower:rate30m / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_upper:rate30m',
            expr: 'vllm_slo:error_ratio_upper:rate30m / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate1h',
            expr: 'clamp_min(1 - (vllm_slo:good:rate1h + vllm_slo:undecided:rate1h) / (vllm_slo:valid:rate1h > 0), 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate1h',
            expr: 'clamp_min(1 - vllm_slo:good:rate1h / (vllm_slo:valid:rate1h > 0), 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_lower:rate1h',
            expr: 'vllm_slo:error_ratio_lower:rate1h / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_upper:rate1h',
            expr: 'vllm_slo:error_ratio_upper:rate1h / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate2h',
            expr: 'clamp_min(1 - (vllm_slo:good:rate2h + vllm_slo:undecided:rate2h) / (vllm_slo:valid:rate2h > 0), 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate2h',
            expr: 'clamp_min(1 - vllm_slo:good:rate2h / (vllm_slo:valid:rate2h > 0), 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_lower:rate2h',
            expr: 'vllm_slo:error_ratio_lower:rate2h / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_upper:rate2h',
            expr: 'vllm_slo:error_ratio_upper:rate2h / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate6h',
            expr: 'clamp_min(1 - (vllm_slo:good:rate6h + vllm_slo:undecided:rate6h) / (vllm_slo:valid:rate6h > 0), 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate6h',
            expr: 'clamp_min(1 - vllm_slo:good:rate6h / (vllm_slo:valid:rate6h > 0), 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_lower:rate6h',
            expr: 'vllm_slo:error_ratio_lower:rate6h / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_upper:rate6h',
            expr: 'vllm_slo:error_ratio_upper:rate6h / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
        ],
      },
      {
        name: 'vllm-slo-long.rules',
        interval: '5m',
        rules: [
          {
            record: 'vllm_slo:error_ratio_lower:rate1d',
            expr: 'clamp_min( 1 - (sum_over_time(vllm_slo:good:rate5m[1d]) + sum_over_time(vllm_slo:undecided:rate5m[1d])) / (sum_over_time(vllm_slo:valid:rate5m[1d]) > 0), 0 )' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate1d',
            expr: 'clamp_min( 1 - sum_over_time(vllm_slo:good:rate5m[1d]) / (sum_over_time(vllm_slo:valid:rate5m[1d]) > 0), 0 )' % $._config,
          },
          {
            record: 'vllm_slo:burn_lower:rate1d',
            expr: 'vllm_slo:error_ratio_lower:rate1d / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_upper:rate1d',
            expr: 'vllm_slo:error_ratio_upper:rate1d / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate3d',
            expr: 'clamp_min( 1 - (sum_over_time(vllm_slo:good:rate5m[3d]) + sum_over_time(vllm_slo:undecided:rate5m[3d])) / (sum_over_time(vllm_slo:valid:rate5m[3d]) > 0), 0 )' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate3d',
            expr: 'clamp_min( 1 - sum_over_time(vllm_slo:good:rate5m[3d]) / (sum_over_time(vllm_slo:valid:rate5m[3d]) > 0), 0 )' % $._config,
          },
          {
            record: 'vllm_slo:burn_lower:rate3d',
            expr: 'vllm_slo:error_ratio_lower:rate3d / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_upper:rate3d',
            expr: 'vllm_slo:error_ratio_upper:rate3d / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate30d',
            expr: 'clamp_min( 1 - (sum_over_time(vllm_slo:good:rate5m[30d]) + sum_over_time(vllm_slo:undecided:rate5m[30d])) / (sum_over_time(vllm_slo:valid:rate5m[30d]) > 0), 0 )' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate30d',
            expr: 'clamp_min( 1 - sum_over_time(vllm_slo:good:rate5m[30d]) / (sum_over_time(vllm_slo:valid:rate5m[30d]) > 0), 0 )' % $._config,
          },
          {
            record: 'vllm_slo:burn_lower:rate30d',
            expr: 'vllm_slo:error_ratio_lower:rate30d / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:burn_upper:rate30d',
            expr: 'vllm_slo:error_ratio_upper:rate30d / (1 - vllm_slo:target:last1h > 0)' % $._config,
          },
          {
            record: 'vllm_slo:budget_remaining_upper:30d',
            expr: '1 - vllm_slo:burn_lower:rate30d' % $._config,
          },
          {
            record: 'vllm_slo:budget_remaining_lower:30d',
            expr: '1 - vllm_slo:burn_upper:rate30d' % $._config,
          },
          {
            record: 'vllm_slo:coverage:1d',
            expr: 'count_over_time(vllm_slo:valid:rate5m[1d:15m]) / 96' % $._config,
          },
          {
            record: 'vllm_slo:coverage:3d',
            expr: 'count_over_time(vllm_slo:valid:rate5m[3d:1h]) / 72' % $._config,
          },
          {
            record: 'vllm_slo:coverage:30d',
            expr: 'count_over_time(vllm_slo:valid:rate5m[30d:1h]) / 720' % $._config,
          },
        ],
      },
      {
        name: 'vllm-gateway.rules',
        rules: [
          {
            record: 'vllm_gateway:requests:rate5m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(inference_gateway_epp_requests_total{%(selector)s}[5m]) or rate( inference_gateway_epp_request_errors_total{error_code!="ModelServerError",%(selector)s}[5m] ) )' % $._config,
          },
          {
            record: 'vllm_gateway:error_ratio:rate5m',
            expr: '( sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(inference_gateway_epp_request_errors_total{%(selector)s}[5m]) ) or vllm_gateway:requests:rate5m * 0 ) / (vllm_gateway:requests:rate5m > 0)' % $._config,
          },
        ],
      },
    ],
  },
  prometheusAlerts+:: {
    groups+: [
      {
        name: 'vllm-diagnosis',
        rules: [
          {
            alert: 'VLLMPoolNotServing',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, model_name) ( vllm_pool_diagnosis_severity{%(selector)s} ) >= 3' % $._config,
            'for': '1m',
            keep_firing_for: '1m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'Half or more of the servers of this pool are critical, failing, stalled or unreachable. Look at the condition of each server first.',
              runbook_url: $._config.runbookBase + 'VLLMPoolNotServing.md',
              summary: 'The pool{{ with $labels.model_name }} of {{ . }}{{end}} does not serve its users, or far too late{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMPoolDegraded',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, model_name) ( vllm_pool_diagnosis_severity{%(selector)s} ) >= 2 unless max by (k8s_cluster_name, k8s_namespace_name, model_name) ( min_over_time(vllm_pool_diagnosis_severity{%(selector)s}[2m]) ) >= 3 unless max by (k8s_cluster_name, k8s_namespace_name, model_name) ( vllm_pool_diagnosis_cause{cause="servers_lost",role="primary",%(selector)s} ) == 1' % $._config,
            'for': '5m',
            keep_firing_for: '1m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'A part of the requests of this pool is served badly, or not at all. The causes of the pool say why.',
              runbook_url: $._config.runbookBase + 'VLLMPoolDegraded.md',
              summary: 'The pool{{ with $labels.model_name }} of {{ . }}{{end}} serves some of its users badly{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMServerNotServing',
            expr: 'vllm_server:severity:max >= 3 unless vllm_server:severity_in_pool:max' % $._config,
            'for': '1m',
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'No pool of the collector has this server, so no other is known to take its requests. Look at its condition.',
              runbook_url: $._config.runbookBase + 'VLLMServerNotServing.md',
              summary: '{{ $labels.instance }} does not serve {{ with $labels.model_name }}{{ . }}{{else}}its model{{end}}, or far too late{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMReplicaHarmsUsers',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ( vllm_diagnosis_user_share_ratio{%(selector)s} ) >= %(replicaShare)g and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_server:severity_in_pool:max >= 3' % $._config,
            'for': '1m',
            keep_firing_for: '30s',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'The router still sends to this server, and it does not serve. Take it out of rotation first: the others serve its users.',
              runbook_url: $._config.runbookBase + 'VLLMReplicaHarmsUsers.md',
              summary: '{{ $labels.instance }}, of a pool, does not serve {{ with $labels.model_name }}{{ . }}{{else}}its model{{end}}, and the router still sends to it: {{ $value | humanizePercentage }} of the pool\'s users{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMReplicaNotServing',
            expr: 'vllm_server:severity_in_pool:max >= 3 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ( vllm_diagnosis_user_share_ratio{%(selector)s} ) >= %(replicaShare)g' % $._config,
            'for': '2m',
            keep_firing_for: '1m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'One server of a pool does not serve, and few users or none are known to be sent to it. The pool has less capacity.',
              runbook_url: $._config.runbookBase + 'VLLMReplicaNotServing.md',
              summary: '{{ $labels.instance }}, of a pool, does not serve {{ with $labels.model_name }}{{ . }}{{else}}its model{{end}}, or far too late{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMServerDegraded',
            expr: 'vllm_server:severity:max >= 2 unless min_over_time(vllm_server:severity:max[2m]) >= 3' % $._config,
            'for': '5m',
            keep_firing_for: '15m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'Users of this server wait longer than usual or get errors, or it is unknown whether it has stalled. The cause is in vllm_diagnosis_cause and in the log of the collector.',
              runbook_url: $._config.runbookBase + 'VLLMServerDegraded.md',
              summary: '{{ $labels.instance }} serves {{ with $labels.model_name }}{{ . }}{{else}}its model{{end}} badly{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMServerVanished',
            expr: 'min by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( min_over_time(vllm_diagnosis_severity{%(selector)s}[1h]) ) < 3 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) vllm_diagnosis_severity{%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) max_over_time(vllm_diagnosis_condition{condition="draining",%(selector)s}[1h]) == 1 and on (k8s_cluster_name, k8s_namespace_name, job) ( count by (k8s_cluster_name, k8s_namespace_name, job) ( max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( vllm_diagnosis_severity{%(selector)s} offset 1h ) ) > ( count by (k8s_cluster_name, k8s_namespace_name, job) ( max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( vllm_diagnosis_severity{%(selector)s} ) ) or count by (k8s_cluster_name, k8s_namespace_name, job) ( max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( vllm_diagnosis_severity{%(selector)s} offset 1h ) ) * 0 ) ) and on (k8s_cluster_name) vllm_up{%(selector)s}' % $._config,
            'for': '10m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'It served within the last hour, now no collector reports it, and its service ({{ $labels.job }}) has fewer servers than an hour ago.',
              runbook_url: $._config.runbookBase + 'VLLMServerVanished.md',
              summary: '{{ $labels.instance }} is not reported any more{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMTooFewServers',
            expr: '( count( max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( vllm_diagnosis_severity{%(selector)s} or vllm_num_requests_running{%(selector)s} ) ) or vector(0) ) < on () max(vllm_config:servers:expected) and on () vllm_up{%(selector)s}' % $._config,
            'for': '10m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'The number of servers that are reported is below vllm_config:servers:expected.',
              runbook_url: $._config.runbookBase + 'VLLMTooFewServers.md',
              summary: 'Only {{ $value }} of the expected servers are reported',
            },
          },
          {
            alert: 'VLLMDiagnosisMissing',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( vllm_num_requests_running{%(selector)s} ) unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) vllm_diagnosis_severity{%(selector)s}' % $._config,
            'for': '15m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'Metrics of this server arrive, but the processor does not diagnose it.',
              runbook_url: $._config.runbookBase + 'VLLMDiagnosisMissing.md',
              summary: '{{ $labels.instance }} is read, but not diagnosed{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
        ],
      },
      {
        name: 'vllm-gpu',
        rules: [
          {
            alert: 'VLLMGPUSlowsServer',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name, detail) ( vllm_diagnosis_cause{cause="slow_steps",detail=~"power_cap|thermal|memory_error|interconnect|clocks_low",%(selector)s} ) == 1' % $._config,
            'for': '5m',
            keep_firing_for: '15m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'The same work takes longer than before, and in the same minutes a GPU of the server shows why. The detail says what it is.',
              runbook_url: $._config.runbookBase + 'VLLMGPUSlowsServer.md',
              summary: '{{ $labels.instance }} is slow because of a GPU ({{ $labels.detail }}){{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMGPUMemoryErrors',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, hw_id, hw_name) ( increase(vllm_accelerator_row_remap_rows_total{error_type="uncorrected",%(selector)s}[1h]) ) > 0 or sum by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, hw_id, hw_name) ( increase(hw_errors_total{error_type="uncorrected",%(selector)s}[1h]) ) > 0 or max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, hw_id, hw_name) ( vllm_accelerator_row_remap_failed{%(selector)s} ) > 0' % $._config,
            keep_firing_for: '15m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'An error in the memory of this GPU could not be corrected within the last hour, or a row could not be replaced.',
              runbook_url: $._config.runbookBase + 'VLLMGPUMemoryErrors.md',
              summary: 'The memory of the GPU {{ $labels.hw_name }}{{ with $labels.k8s_pod_name }} of {{ . }}{{end}} has uncorrected errors{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMGPUExporterSilent',
            expr: 'count by (k8s_cluster_name, job, instance) ( last_over_time(vllm_accelerator_workloads{%(selector)s}[1h]) ) unless on (k8s_cluster_name, job, instance) vllm_accelerator_workloads{%(selector)s} and on (k8s_cluster_name) vllm_up{%(selector)s}' % $._config,
            'for': '10m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'The diagnosis cannot say any more whether a GPU is the cause, and cannot exclude it.',
              runbook_url: $._config.runbookBase + 'VLLMGPUExporterSilent.md',
              summary: 'The exporter of GPU metrics {{ $labels.instance }} is not read any more{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
        ],
      },
      {
        name: 'vllm-slo',
        rules: [
          {
            alert: 'VLLMBudgetBurnFast',
            expr: 'vllm_slo:error_ratio_lower:rate1h > clamp_max(%(burnFast)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:error_ratio_lower:rate5m > clamp_max(%(burnFast)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:valid:rate5m * 300 >= %(eventsFast)g unless on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_slo:requests:rate5m * 300 < %(eventsFast)g' % $._config,
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: '{{ $value | humanizePercentage }} of the events of the last hour certainly missed the objective, and the last five minutes are as bad.',
              runbook_url: $._config.runbookBase + 'VLLMBudgetBurnFast.md',
              summary: 'The objective {{ $labels.objective }} of {{ with $labels.model_name }}{{ . }}{{else}}all models{{end}} is missed so often that 2 % of the month\'s budget go in an hour{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMBudgetBurnMedium',
            expr: 'vllm_slo:error_ratio_lower:rate6h > clamp_max(%(burnMedium)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:error_ratio_lower:rate30m > clamp_max(%(burnMedium)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:valid:rate30m * 1800 >= %(eventsMedium)g unless on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_slo:requests:rate30m * 1800 < %(eventsMedium)g' % $._config,
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: '{{ $value | humanizePercentage }} of the events of the last six hours certainly missed the objective, and the last half hour is as bad.',
              runbook_url: $._config.runbookBase + 'VLLMBudgetBurnMedium.md',
              summary: 'The objective {{ $labels.objective }} of {{ with $labels.model_name }}{{ . }}{{else}}all models{{end}} is missed so often that 5 % of the month\'s budget go in six hours{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
        ],
      },
      {
        name: 'vllm-slo-long',
        interval: '5m',
        rules: [
          {
            alert: 'VLLMBudgetBurnSlow',
            expr: 'vllm_slo:error_ratio_lower:rate1d > clamp_max(%(burnSlow)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:error_ratio_lower:rate2h > clamp_max(%(burnSlow)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:valid:rate2h * 7200 >= %(eventsSlow)g unless on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_slo:requests:rate2h * 7200 < %(eventsSlow)g and vllm_slo:coverage:1d >= %(coverage)g' % $._config,
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: '{{ $value | humanizePercentage }} of the events of the last day certainly missed the objective, and the last two hours are as bad.',
              runbook_url: $._config.runbookBase + 'VLLMBudgetBurnSlow.md',
              summary: 'The objective {{ $labels.objective }} of {{ with $labels.model_name }}{{ . }}{{else}}all models{{end}} is missed so often that 10 % of the month\'s budget go in a day{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMBudgetBurnLeak',
            expr: 'vllm_slo:error_ratio_lower:rate3d > clamp_max(%(burnLeak)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:error_ratio_lower:rate6h > clamp_max(%(burnLeak)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:valid:rate6h * 21600 >= %(eventsLeak)g unless on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_slo:requests:rate6h * 21600 < %(eventsLeak)g and vllm_slo:coverage:3d >= %(coverage)g' % $._config,
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: '{{ $value | humanizePercentage }} of the events of the last three days certainly missed the objective, and the last six hours are as bad.',
              runbook_url: $._config.runbookBase + 'VLLMBudgetBurnLeak.md',
              summary: 'The objective {{ $labels.objective }} of {{ with $labels.model_name }}{{ . }}{{else}}all models{{end}} will use up its budget before the month ends{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMBudgetExhausted',
            expr: 'vllm_slo:budget_remaining_upper:30d <= 0 and vllm_slo:coverage:30d >= %(coverage)g' % $._config,
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'More events of the last 30 days certainly missed the objective than the target allows.',
              runbook_url: $._config.runbookBase + 'VLLMBudgetExhausted.md',
              summary: 'The error budget of the objective {{ $labels.objective }} of {{ with $labels.model_name }}{{ . }}{{else}}all models{{end}} is used up{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
        ],
      },
      {
        name: 'vllm-gateway',
        rules: [
          {
            alert: 'VLLMGatewayErrors',
            expr: 'vllm_gateway:error_ratio:rate5m > %(gatewayErrorRatio)g and on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_gateway:requests:rate5m * 300 >= %(gatewayRequests)g' % $._config,
            'for': '5m',
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: '{{ $value | humanizePercentage }} of the requests that reached the gateway\'s endpoint picker failed in the last five minutes.',
              runbook_url: $._config.runbookBase + 'VLLMGatewayErrors.md',
              summary: '{{ $value | humanizePercentage }} of the requests for {{ with $labels.model_name }}{{ . }}{{else}}an unknown model{{end}} fail at the gateway{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMGatewayNoReadyEndpoints',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, job, pool) ( inference_gateway_pool_endpoint_ready{%(selector)s} ) == 0' % $._config,
            'for': '1m',
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'The endpoint picker knows no server whose metrics are fresh.',
              runbook_url: $._config.runbookBase + 'VLLMGatewayNoReadyEndpoints.md',
              summary: 'The gateway has no ready endpoint in the pool {{ $labels.pool }}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMGatewayLatencyHigh',
            expr: 'histogram_quantile( 0.99, sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, le) ( rate(inference_gateway_epp_request_duration_seconds_bucket{%(selector)s}[5m]) ) ) > %(gatewayLatencySeconds)g and on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_gateway:requests:rate5m * 300 >= %(gatewayRequests)g' % $._config,
            'for': '10m',
            keep_firing_for: '10m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'The p99 of the time from the arrival at the gateway to the end of the response is above the threshold.',
              runbook_url: $._config.runbookBase + 'VLLMGatewayLatencyHigh.md',
              summary: '1 % of the requests for {{ with $labels.model_name }}{{ . }}{{else}}an unknown model{{end}} take longer than {{ $value | humanizeDuration }} at the gateway{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMLoRAAdapterNotLoaded',
            expr: 'count by (k8s_cluster_name, k8s_namespace_name, job, adapter_name) ( max by (k8s_cluster_name, k8s_namespace_name, job, instance, adapter_name) ( inference_gateway_lora_adapter_status{%(selector)s} ) == 1 ) < on (k8s_cluster_name, k8s_namespace_name, job) group_left () count by (k8s_cluster_name, k8s_namespace_name, job) ( count by (k8s_cluster_name, k8s_namespace_name, job, instance) ( inference_gateway_lora_adapter_status{%(selector)s} ) )' % $._config,
            'for': '15m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'The syncers of some servers have this adapter loaded, those of others have not.',
              runbook_url: $._config.runbookBase + 'VLLMLoRAAdapterNotLoaded.md',
              summary: 'The LoRA adapter {{ $labels.adapter_name }} is loaded on only {{ $value }} of the servers of {{ $labels.job }}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
        ],
      },
      {
        name: 'vllm-collector',
        rules: [
          {
            alert: 'VLLMCollectorSilent',
            expr: 'absent(vllm_up{%(selector)s}) or on () ( count by (k8s_cluster_name) (last_over_time(vllm_up{k8s_cluster_name!="",%(selector)s}[1d])) unless on (k8s_cluster_name) vllm_up{%(selector)s} )' % $._config,
            'for': '10m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'No metrics of vLLM servers arrive, so no other alert of vLLM can fire.',
              runbook_url: $._config.runbookBase + 'VLLMCollectorSilent.md',
              summary: 'No metrics of vLLM servers arrive{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMCollectorQueueFilling',
            expr: 'max by (job, instance, exporter, data_type) (otelcol_exporter_queue_size) / (max by (job, instance, exporter, data_type) (otelcol_exporter_queue_capacity) > 0) > %(queueShare)g' % $._config,
            'for': '15m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'The collector reads more than its exporter can send.',
              runbook_url: $._config.runbookBase + 'VLLMCollectorQueueFilling.md',
              summary: 'The queue of the exporter {{ $labels.exporter }} of {{ $labels.instance }} is {{ $value | humanizePercentage }} full',
            },
          },
          {
            alert: 'VLLMCollectorSendFailing',
            expr: 'sum by (job, instance, exporter) (rate(otelcol_exporter_send_failed_metric_points[5m])) > 0 or sum by (job, instance, exporter) (rate(otelcol_exporter_enqueue_failed_metric_points[5m])) > 0' % $._config,
            'for': '5m',
            keep_firing_for: '15m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'Points were dropped: the backend refused them, or the queue was full.',
              runbook_url: $._config.runbookBase + 'VLLMCollectorSendFailing.md',
              summary: 'The exporter {{ $labels.exporter }} of {{ $labels.instance }} loses points',
            },
          },
        ],
      },
    ],
  },
}

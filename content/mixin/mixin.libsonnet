// Written by lab/cmd/contentgen from cmd/vllmctl/content. Do not edit: run "make generate".
{
  _config+:: {
    // Matchers for each series except the collector's own, for example 'k8s_cluster_name="prod"'. Servers, pools
    // and the gateway must all have these labels: they have different jobs.
    selector: '',
    // The address of the runbooks' folder, and that of Grafana; without the latter no alert has the address of a board.
    runbookBase: 'https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/',
    grafanaURL: '',
    // The number of servers below which VLLMTooFewServers fires.
    serversExpected: 1,
    // The share of a pool's users at a replica that pages.
    replicaShare: 0.05,
    // The burn rate over 1h and 5m that pages.
    burnFast: 14.4,
    // The burn rate over 6h and 30m that pages.
    burnMedium: 6,
    // The burn rate over 1d and 2h that opens a ticket.
    burnSlow: 3,
    // The burn rate over 3d and 6h that opens a ticket.
    burnLeak: 1,
    // The share of missed events that is always enough for an alert on burn rates.
    errorRatioAlways: 0.9,
    // The fewest events and requests in 5m for `burnFast`.
    eventsFast: 10,
    // The same in 30m for `burnMedium`.
    eventsMedium: 30,
    // The same in 2h for `burnSlow`.
    eventsSlow: 60,
    // The same in 6h for `burnLeak`.
    eventsLeak: 100,
    // The recorded share from which on a window of days counts.
    coverage: 0.25,
    // The share of errors at the gateway that pages.
    gatewayErrorRatio: 0.05,
    // The fewest requests in 5m for the alerts of the gateway.
    gatewayRequests: 20,
    // The p99 at the gateway that opens a ticket, in seconds.
    gatewayLatencySeconds: 10,
    // The share of an exporter's queue that may be full.
    queueShare: 0.5,
    // The share of first tokens within 2.5 s, for vLLM's own names.
    rawFirstTokenTarget: 0.95,
    // The p95 of the time in the queue, in seconds, for vLLM's own names.
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
          {
            record: 'vllm_namespace:servers_known:group',
            expr: 'group by (k8s_cluster_name, k8s_namespace_name) ( last_over_time(vllm_up{%(selector)s}[1h]) and on () ( max_over_time(otelcol_receiver_vllm_discovered_targets{stage="kept"}[1h]) > otelcol_receiver_vllm_discovered_targets{stage="kept"} ) unless on () ( last_over_time(otelcol_receiver_vllm_discovered_targets{stage="kept"}[1h]) unless otelcol_receiver_vllm_discovered_targets{stage="kept"} ) or last_over_time(vllm_up{%(selector)s}[1h]) and on (k8s_cluster_name) vllm_up{%(selector)s} and on () otelcol_receiver_vllm_discovered_targets{stage="kept"} unless on () ( last_over_time(otelcol_receiver_vllm_discovered_targets{stage="kept"}[1h]) unless otelcol_receiver_vllm_discovered_targets{stage="kept"} ) or vllm_up{%(selector)s} unless on () ( last_over_time(otelcol_receiver_vllm_discovered_targets{stage="kept"}[10m]) unless otelcol_receiver_vllm_discovered_targets{stage="kept"} ) ) unless on (k8s_cluster_name, k8s_namespace_name) ( vllm_diagnosis_severity{model_name="",%(selector)s} < 2 unless vllm_diagnosis_severity{model_name="",%(selector)s} offset 10m )' % $._config,
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
            record: 'vllm_slo:valid:rate2m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_valid_total{%(selector)s}[2m]) )' % $._config,
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
            record: 'vllm_slo:good:rate2m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_good_total{%(selector)s}[2m]) )' % $._config,
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
            record: 'vllm_slo:undecided:rate2m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ( rate(vllm_slo_undecided_total{%(selector)s}[2m]) )' % $._config,
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
            record: 'vllm_slo:requests:rate2m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(vllm_time_to_first_token_seconds_count{%(selector)s}[2m]) )' % $._config,
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
            record: 'vllm_slo:error_ratio_lower:rate2m',
            expr: 'clamp_min(1 - (vllm_slo:good:rate2m + vllm_slo:undecided:rate2m) / (vllm_slo:valid:rate2m > 0), 0) and vllm_slo:valid:rate2m * 120 >= %(eventsFast)g unless on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_slo:requests:rate2m * 120 < %(eventsFast)g' % $._config,
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate5m',
            expr: 'clamp_min(1 - (vllm_slo:good:rate5m + vllm_slo:undecided:rate5m) / (vllm_slo:valid:rate5m > 0), 0)',
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate5m',
            expr: 'clamp_min(1 - vllm_slo:good:rate5m / (vllm_slo:valid:rate5m > 0), 0)',
          },
          {
            record: 'vllm_slo:burn_lower:rate5m',
            expr: 'vllm_slo:error_ratio_lower:rate5m / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:burn_upper:rate5m',
            expr: 'vllm_slo:error_ratio_upper:rate5m / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate30m',
            expr: 'clamp_min( 1 - (vllm_slo:good:rate30m + vllm_slo:undecided:rate30m) / (vllm_slo:valid:rate30m > 0), 0 )',
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate30m',
            expr: 'clamp_min(1 - vllm_slo:good:rate30m / (vllm_slo:valid:rate30m > 0), 0)',
          },
          {
            record: 'vllm_slo:burn_lower:rate30m',
            expr: 'vllm_slo:error_ratio_lower:rate30m / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:burn_upper:rate30m',
            expr: 'vllm_slo:error_ratio_upper:rate30m / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate1h',
            expr: 'clamp_min(1 - (vllm_slo:good:rate1h + vllm_slo:undecided:rate1h) / (vllm_slo:valid:rate1h > 0), 0)',
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate1h',
            expr: 'clamp_min(1 - vllm_slo:good:rate1h / (vllm_slo:valid:rate1h > 0), 0)',
          },
          {
            record: 'vllm_slo:burn_lower:rate1h',
            expr: 'vllm_slo:error_ratio_lower:rate1h / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:burn_upper:rate1h',
            expr: 'vllm_slo:error_ratio_upper:rate1h / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate2h',
            expr: 'clamp_min(1 - (vllm_slo:good:rate2h + vllm_slo:undecided:rate2h) / (vllm_slo:valid:rate2h > 0), 0)',
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate2h',
            expr: 'clamp_min(1 - vllm_slo:good:rate2h / (vllm_slo:valid:rate2h > 0), 0)',
          },
          {
            record: 'vllm_slo:burn_lower:rate2h',
            expr: 'vllm_slo:error_ratio_lower:rate2h / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:burn_upper:rate2h',
            expr: 'vllm_slo:error_ratio_upper:rate2h / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate6h',
            expr: 'clamp_min(1 - (vllm_slo:good:rate6h + vllm_slo:undecided:rate6h) / (vllm_slo:valid:rate6h > 0), 0)',
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate6h',
            expr: 'clamp_min(1 - vllm_slo:good:rate6h / (vllm_slo:valid:rate6h > 0), 0)',
          },
          {
            record: 'vllm_slo:burn_lower:rate6h',
            expr: 'vllm_slo:error_ratio_lower:rate6h / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:burn_upper:rate6h',
            expr: 'vllm_slo:error_ratio_upper:rate6h / (1 - vllm_slo:target:last1h > 0)',
          },
        ],
      },
      {
        name: 'vllm-slo-long.rules',
        interval: '5m',
        rules: [
          {
            record: 'vllm_slo:error_ratio_lower:rate1d',
            expr: 'clamp_min( 1 - (sum_over_time(vllm_slo:good:rate5m[1d]) + sum_over_time(vllm_slo:undecided:rate5m[1d])) / (sum_over_time(vllm_slo:valid:rate5m[1d]) > 0), 0 )',
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate1d',
            expr: 'clamp_min( 1 - sum_over_time(vllm_slo:good:rate5m[1d]) / (sum_over_time(vllm_slo:valid:rate5m[1d]) > 0), 0 )',
          },
          {
            record: 'vllm_slo:burn_lower:rate1d',
            expr: 'vllm_slo:error_ratio_lower:rate1d / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:burn_upper:rate1d',
            expr: 'vllm_slo:error_ratio_upper:rate1d / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate3d',
            expr: 'clamp_min( 1 - (sum_over_time(vllm_slo:good:rate5m[3d]) + sum_over_time(vllm_slo:undecided:rate5m[3d])) / (sum_over_time(vllm_slo:valid:rate5m[3d]) > 0), 0 )',
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate3d',
            expr: 'clamp_min( 1 - sum_over_time(vllm_slo:good:rate5m[3d]) / (sum_over_time(vllm_slo:valid:rate5m[3d]) > 0), 0 )',
          },
          {
            record: 'vllm_slo:burn_lower:rate3d',
            expr: 'vllm_slo:error_ratio_lower:rate3d / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:burn_upper:rate3d',
            expr: 'vllm_slo:error_ratio_upper:rate3d / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:error_ratio_lower:rate30d',
            expr: 'clamp_min( 1 - (sum_over_time(vllm_slo:good:rate5m[30d]) + sum_over_time(vllm_slo:undecided:rate5m[30d])) / (sum_over_time(vllm_slo:valid:rate5m[30d]) > 0), 0 )',
          },
          {
            record: 'vllm_slo:error_ratio_upper:rate30d',
            expr: 'clamp_min( 1 - sum_over_time(vllm_slo:good:rate5m[30d]) / (sum_over_time(vllm_slo:valid:rate5m[30d]) > 0), 0 )',
          },
          {
            record: 'vllm_slo:burn_lower:rate30d',
            expr: 'vllm_slo:error_ratio_lower:rate30d / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:burn_upper:rate30d',
            expr: 'vllm_slo:error_ratio_upper:rate30d / (1 - vllm_slo:target:last1h > 0)',
          },
          {
            record: 'vllm_slo:budget_remaining_upper:30d',
            expr: '1 - vllm_slo:burn_lower:rate30d',
          },
          {
            record: 'vllm_slo:budget_remaining_lower:30d',
            expr: '1 - vllm_slo:burn_upper:rate30d',
          },
          {
            record: 'vllm_slo:coverage:1d',
            expr: 'count_over_time(vllm_slo:valid:rate5m[1d:15m]) / 96',
          },
          {
            record: 'vllm_slo:coverage:3d',
            expr: 'count_over_time(vllm_slo:valid:rate5m[3d:1h]) / 72',
          },
          {
            record: 'vllm_slo:coverage:30d',
            expr: 'count_over_time(vllm_slo:valid:rate5m[30d:1h]) / 720',
          },
        ],
      },
      {
        name: 'vllm-gateway.rules',
        rules: [
          {
            record: 'vllm_gateway:requests:rate2m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(inference_gateway_epp_requests_total{%(selector)s}[2m]) or rate( inference_gateway_epp_request_errors_total{error_code!="ModelServerError",%(selector)s}[2m] ) ) or sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( avg_over_time(inference_gateway_request_rate_per_second{%(selector)s}[2m]) )' % $._config,
          },
          {
            record: 'vllm_gateway:error_ratio:rate2m',
            expr: '( sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(inference_gateway_epp_request_errors_total{%(selector)s}[2m]) ) or sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(inference_gateway_epp_requests_total{%(selector)s}[2m]) ) * 0 or sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( avg_over_time(inference_gateway_request_error_ratio{model_name!="",%(selector)s}[2m]) * avg_over_time(inference_gateway_request_rate_per_second{%(selector)s}[2m]) ) ) / (vllm_gateway:requests:rate2m > 0)' % $._config,
          },
          {
            record: 'vllm_gateway:requests:rate5m',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(inference_gateway_epp_requests_total{%(selector)s}[5m]) or rate( inference_gateway_epp_request_errors_total{error_code!="ModelServerError",%(selector)s}[5m] ) ) or sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( avg_over_time(inference_gateway_request_rate_per_second{%(selector)s}[5m]) )' % $._config,
          },
          {
            record: 'vllm_gateway:error_ratio:rate5m',
            expr: '( sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(inference_gateway_epp_request_errors_total{%(selector)s}[5m]) ) or sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( rate(inference_gateway_epp_requests_total{%(selector)s}[5m]) ) * 0 or sum by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( avg_over_time(inference_gateway_request_error_ratio{model_name!="",%(selector)s}[5m]) * avg_over_time(inference_gateway_request_rate_per_second{%(selector)s}[5m]) ) ) / (vllm_gateway:requests:rate5m > 0)' % $._config,
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
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'page',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.model_name -}}\n{{ $servers := printf `model_name=%%q` $labels.model_name -}}\n{{ with $labels.k8s_namespace_name }}{{ $servers = printf `%%s,k8s_namespace_name=%%q` $servers . }}{{ end -}}\n{{ with $labels.k8s_cluster_name }}{{ $servers = printf `%%s,k8s_cluster_name=%%q` $servers . }}{{ end -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMPoolNotServing",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\nHalf or more of the servers of this pool do not serve their users, or serve them far too late. The worst servers come first.\nCondition: {{ range $i, $x := query (printf `count by (condition) (vllm_pool_diagnosis_condition{%%s,%(selector)s} == 1)` $of) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}not reported now{{end}}. Cause: {{ range $i, $x := query (printf `count by (cause, detail) (vllm_pool_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $of) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ if not $i }}{{ $pages = "" }}{{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.cause }}{{else}}{{ or $why "not known" }}{{end}}{{ with $pages }}. What to do:{{ . }}{{end}}\n{{ range query (printf `sort_desc(topk(5, max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2))` $servers) -}}\n{{ $s := printf `%%s,instance=%%q` $servers .Labels.instance -}}\n{{ $why = "" }}Server {{ .Labels.instance }}{{ with .Labels.k8s_pod_name }} ({{ . }}){{end}}: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $s $s) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}condition not reported now{{end}}, cause {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $s) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{else}}{{ or $why "not known" }}{{end}}{{ range query (printf `max(vllm_diagnosis_user_share_ratio{%%s,%(selector)s}) > 0` $s) }}; the router still sends {{ .Value | humanizePercentage }} of the users to it{{end}}\n{{else}}No server with these labels harms its users now.\n{{ end -}}\n{{ range query (printf `count(max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2) - 5 > 0` $servers) }}And {{ .Value }} more\n{{ end -}}\nWait for the first token so far, worst of these servers: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nTime between tokens, worst of these servers: {{ with query (printf `max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}{{ . | first | value | humanizeDuration }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nRequests that wait: {{ with query (printf `max_over_time((sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2)))[1m:1s])` $servers $servers) }}{{ if or (. | first | value) (not (or $hangs $late)) }}{{ . | first | value | printf "%%.0f" }} now{{else}}none that gauges show{{end}}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)))[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ with query (printf `sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2)) >= 0` $servers $servers) }}Requests that arrive a second: {{ . | first | value | printf "%%.2g" }} now, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | printf "%%.2g" }}{{else}}no usual value yet{{end}}\n{{ end -}}\n{{ with query (printf `max(vllm_request_prompt_tokens_mean{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}Tokens of a prompt, worst of these servers: {{ . | first | value | printf "%%.0f" }} now, {{ with query (printf `quantile_over_time(0.5, (max(vllm_request_prompt_tokens_mean{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ end -}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}See since when. A change in all servers at one time is a release, a configuration, the network or the model storage.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-pool?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMPoolNotServing.md' % $._config,
              summary: 'The pool{{ with $labels.model_name }} of {{ . }}{{end}} does not serve its users, or serves them far too late{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMPoolDegraded',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, model_name) ( vllm_pool_diagnosis_severity{%(selector)s} ) >= 2 unless max by (k8s_cluster_name, k8s_namespace_name, model_name) ( min_over_time(vllm_pool_diagnosis_severity{%(selector)s}[2m]) ) >= 3 unless max by (k8s_cluster_name, k8s_namespace_name, model_name) ( vllm_pool_diagnosis_cause{cause="servers_lost",role="primary",%(selector)s} ) == 1' % $._config,
            'for': '5m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.model_name -}}\n{{ $servers := printf `model_name=%%q` $labels.model_name -}}\n{{ with $labels.k8s_namespace_name }}{{ $servers = printf `%%s,k8s_namespace_name=%%q` $servers . }}{{ end -}}\n{{ with $labels.k8s_cluster_name }}{{ $servers = printf `%%s,k8s_cluster_name=%%q` $servers . }}{{ end -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMPoolDegraded",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\nA part of the requests of this pool fails or waits too long.\nCondition: {{ range $i, $x := query (printf `count by (condition) (vllm_pool_diagnosis_condition{%%s,%(selector)s} == 1)` $of) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}not reported now{{end}}. Cause: {{ range $i, $x := query (printf `count by (cause, detail) (vllm_pool_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $of) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ if not $i }}{{ $pages = "" }}{{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.cause }}{{else}}{{ or $why "not known" }}{{end}}{{ with $pages }}. What to do:{{ . }}{{end}}\n{{ range query (printf `sort_desc(topk(5, max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2))` $servers) -}}\n{{ $s := printf `%%s,instance=%%q` $servers .Labels.instance -}}\n{{ $why = "" }}Server {{ .Labels.instance }}{{ with .Labels.k8s_pod_name }} ({{ . }}){{end}}: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $s $s) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}condition not reported now{{end}}, cause {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $s) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{else}}{{ or $why "not known" }}{{end}}{{ range query (printf `max(vllm_diagnosis_user_share_ratio{%%s,%(selector)s}) > 0` $s) }}; the router still sends {{ .Value | humanizePercentage }} of the users to it{{end}}\n{{else}}No server with these labels harms its users now.\n{{ end -}}\n{{ range query (printf `count(max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2) - 5 > 0` $servers) }}And {{ .Value }} more\n{{ end -}}\nWait for the first token so far, worst of these servers: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nTime between tokens, worst of these servers: {{ with query (printf `max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}{{ . | first | value | humanizeDuration }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nRequests that wait: {{ with query (printf `max_over_time((sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2)))[1m:1s])` $servers $servers) }}{{ if or (. | first | value) (not (or $hangs $late)) }}{{ . | first | value | printf "%%.0f" }} now{{else}}none that gauges show{{end}}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)))[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ with query (printf `sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2)) >= 0` $servers $servers) }}Requests that arrive a second: {{ . | first | value | printf "%%.2g" }} now, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | printf "%%.2g" }}{{else}}no usual value yet{{end}}\n{{ end -}}\n{{ with query (printf `max(vllm_request_prompt_tokens_mean{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}Tokens of a prompt, worst of these servers: {{ . | first | value | printf "%%.0f" }} now, {{ with query (printf `quantile_over_time(0.5, (max(vllm_request_prompt_tokens_mean{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ end -}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}Read the causes of the pool; the page of the primary one has the next steps.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-pool?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMPoolDegraded.md' % $._config,
              summary: 'The pool{{ with $labels.model_name }} of {{ . }}{{end}} serves some of its users badly{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMServerNotServing',
            expr: '( vllm_server:severity:max >= 3 or last_over_time(vllm_server:severity:max[2m]) >= 2 and max_over_time(vllm_server:severity:max[5m]) >= 3 and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ALERTS{alertname=~"VLLMServerNotServing",alertstate="firing"} ) unless vllm_server:severity_in_pool:max',
            'for': '1m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              pod: '{{ $labels.k8s_pod_name }}',
              severity: 'page',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance $labels.model_name -}}\n{{ $servers := $of }}{{ $reads := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMServerNotServing",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\nIts users get no answer or errors, or wait many times longer than usual.\nCondition: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $of $of) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}not reported now{{end}}. Cause: {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $of) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ if not $i }}{{ $pages = "" }}{{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.cause }}{{else}}{{ range $i, $x := query (printf `count by (outcome) (vllm_scrape_failure{%%s,%(selector)s} == 1)` $reads) | sortByLabel "outcome" }}{{ if $i }}, {{end}}{{ if not $i }}the scrape fails: {{end}}{{ .Labels.outcome }}{{ $hangs = "" }}{{ if eq .Labels.outcome "refused" }} (nothing listens){{ $ended = true }}{{end}}{{else}}{{ or $why "not known" }}{{end}}{{end}}{{ with $pages }}. What to do:{{ . }}{{end}}\nWait for the first token so far: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nTime between tokens: {{ with query (printf `max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nRequests that wait: {{ with query (printf `max_over_time((sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s})))[1m:1s])` $servers) }}{{ if or (. | first | value) (not (or $hangs $late)) }}{{ . | first | value | printf "%%.0f" }} now{{else}}none that gauges show{{end}}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)))[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ with query (printf `sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s})) >= 0` $servers) }}Requests that arrive a second: {{ . | first | value | printf "%%.2g" }} now, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.2g" }}{{else}}no usual value yet{{end}}\n{{ end -}}\n{{ with query (printf `max(vllm_request_prompt_tokens_mean{%%s,%(selector)s}) >= 0` $servers) }}Tokens of a prompt: {{ . | first | value | printf "%%.0f" }} now, {{ with query (printf `quantile_over_time(0.5, (max(vllm_request_prompt_tokens_mean{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ end -}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}Send one request of your own. No answer proves an outage. A quick answer proves little while others wait: compare it with the usual wait for the first token.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-engine?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.k8s_pod_name }}&var-pod={{ urlquery . }}{{end}}{{ with $labels.instance }}&var-instance={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMServerNotServing.md' % $._config,
              summary: '{{ $labels.instance }} does not serve {{ with $labels.model_name }}{{ . }}{{else}}its model{{end}}, or serves it far too late{{ with $labels.k8s_pod_name }}, pod {{ . }}{{end}}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMReplicaHarmsUsers',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ( vllm_diagnosis_user_share_ratio{%(selector)s} ) >= %(replicaShare)g and vllm_server:severity_in_pool:max >= 3 or ( max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ( vllm_diagnosis_user_share_ratio{%(selector)s} ) >= 0.5 * %(replicaShare)g and vllm_server:severity_in_pool:max >= 3 or max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ( vllm_diagnosis_user_share_ratio{%(selector)s} ) and vllm_server:severity_in_pool:max == 2 and max_over_time(vllm_server:severity_in_pool:max[5m]) >= 3 ) and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ALERTS{alertname=~"VLLMReplicaHarmsUsers",alertstate="firing"}' % $._config,
            'for': '1m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              pod: '{{ $labels.k8s_pod_name }}',
              severity: 'page',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance $labels.model_name -}}\n{{ $servers := $of }}{{ $reads := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMReplicaHarmsUsers",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\nUsers who are routed to it get no answer or errors, or wait many times longer than usual.\nCondition: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $of $of) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}not reported now{{end}}. Cause: {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $of) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ if not $i }}{{ $pages = "" }}{{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.cause }}{{else}}{{ range $i, $x := query (printf `count by (outcome) (vllm_scrape_failure{%%s,%(selector)s} == 1)` $reads) | sortByLabel "outcome" }}{{ if $i }}, {{end}}{{ if not $i }}the scrape fails: {{end}}{{ .Labels.outcome }}{{ $hangs = "" }}{{ if eq .Labels.outcome "refused" }} (nothing listens){{ $ended = true }}{{end}}{{else}}{{ or $why "not known" }}{{end}}{{end}}{{ with $pages }}. What to do:{{ . }}{{end}}\nWait for the first token so far: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nTime between tokens: {{ with query (printf `max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nRequests that wait: {{ with query (printf `max_over_time((sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s})))[1m:1s])` $servers) }}{{ if or (. | first | value) (not (or $hangs $late)) }}{{ . | first | value | printf "%%.0f" }} now{{else}}none that gauges show{{end}}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)))[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ with query (printf `sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s})) >= 0` $servers) }}Requests that arrive a second: {{ . | first | value | printf "%%.2g" }} now, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.2g" }}{{else}}no usual value yet{{end}}\n{{ end -}}\n{{ with query (printf `max(vllm_request_prompt_tokens_mean{%%s,%(selector)s}) >= 0` $servers) }}Tokens of a prompt: {{ . | first | value | printf "%%.0f" }} now, {{ with query (printf `quantile_over_time(0.5, (max(vllm_request_prompt_tokens_mean{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ end -}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}See whether the others have room, and take it out of rotation: they serve its users.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-engine?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.k8s_pod_name }}&var-pod={{ urlquery . }}{{end}}{{ with $labels.instance }}&var-instance={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMReplicaHarmsUsers.md' % $._config,
              summary: '{{ $labels.instance }} in a pool does not serve {{ with $labels.model_name }}{{ . }}{{else}}its model{{end}}, or serves it far too late{{ if $value }}: the router still sends {{ $value | humanizePercentage }} of the pool\'s users to it{{end}}{{ with $labels.k8s_pod_name }}, pod {{ . }}{{end}}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMReplicaNotServing',
            expr: 'vllm_server:severity_in_pool:max >= 3 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ALERTS{alertname=~"VLLMReplicaHarmsUsers",alertstate="firing"}',
            'for': '2m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              pod: '{{ $labels.k8s_pod_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance $labels.model_name -}}\n{{ $servers := $of }}{{ $reads := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMReplicaNotServing",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\nOne server of a pool does not serve. As far as is known, it gets few or no users. The pool has less capacity.\nCondition: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $of $of) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}not reported now{{end}}. Cause: {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $of) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ if not $i }}{{ $pages = "" }}{{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.cause }}{{else}}{{ range $i, $x := query (printf `count by (outcome) (vllm_scrape_failure{%%s,%(selector)s} == 1)` $reads) | sortByLabel "outcome" }}{{ if $i }}, {{end}}{{ if not $i }}the scrape fails: {{end}}{{ .Labels.outcome }}{{ $hangs = "" }}{{ if eq .Labels.outcome "refused" }} (nothing listens){{ $ended = true }}{{end}}{{else}}{{ or $why "not known" }}{{end}}{{end}}{{ with $pages }}. What to do:{{ . }}{{end}}\nWait for the first token so far: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nTime between tokens: {{ with query (printf `max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nRequests that wait: {{ with query (printf `max_over_time((sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s})))[1m:1s])` $servers) }}{{ if or (. | first | value) (not (or $hangs $late)) }}{{ . | first | value | printf "%%.0f" }} now{{else}}none that gauges show{{end}}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)))[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ with query (printf `sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s})) >= 0` $servers) }}Requests that arrive a second: {{ . | first | value | printf "%%.2g" }} now, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.2g" }}{{else}}no usual value yet{{end}}\n{{ end -}}\n{{ with query (printf `max(vllm_request_prompt_tokens_mean{%%s,%(selector)s}) >= 0` $servers) }}Tokens of a prompt: {{ . | first | value | printf "%%.0f" }} now, {{ with query (printf `quantile_over_time(0.5, (max(vllm_request_prompt_tokens_mean{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ end -}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}See whether the others have room.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-engine?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.k8s_pod_name }}&var-pod={{ urlquery . }}{{end}}{{ with $labels.instance }}&var-instance={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMReplicaNotServing.md' % $._config,
              summary: '{{ $labels.instance }} in a pool does not serve {{ with $labels.model_name }}{{ . }}{{else}}its model{{end}}, or serves it far too late{{ with $labels.k8s_pod_name }}, pod {{ . }}{{end}}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMServerDegraded',
            expr: 'vllm_server:severity:max >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ALERTS{alertname=~"VLLMServerNotServing|VLLMReplicaHarmsUsers|VLLMReplicaNotServing",alertstate="firing"}',
            'for': '5m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              pod: '{{ $labels.k8s_pod_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance $labels.model_name -}}\n{{ $servers := $of }}{{ $reads := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMServerDegraded",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\nUsers of this server wait longer than usual or get errors, or it is unknown whether it has stalled.\nCondition: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $of $of) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}not reported now{{end}}. Cause: {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $of) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ if not $i }}{{ $pages = "" }}{{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.cause }}{{else}}{{ range $i, $x := query (printf `count by (outcome) (vllm_scrape_failure{%%s,%(selector)s} == 1)` $reads) | sortByLabel "outcome" }}{{ if $i }}, {{end}}{{ if not $i }}the scrape fails: {{end}}{{ .Labels.outcome }}{{ $hangs = "" }}{{ if eq .Labels.outcome "refused" }} (nothing listens){{ $ended = true }}{{end}}{{else}}{{ or $why "not known" }}{{end}}{{end}}{{ with $pages }}. What to do:{{ . }}{{end}}\nWait for the first token so far: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nTime between tokens: {{ with query (printf `max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nRequests that wait: {{ with query (printf `max_over_time((sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s})))[1m:1s])` $servers) }}{{ if or (. | first | value) (not (or $hangs $late)) }}{{ . | first | value | printf "%%.0f" }} now{{else}}none that gauges show{{end}}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)))[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ with query (printf `sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s})) >= 0` $servers) }}Requests that arrive a second: {{ . | first | value | printf "%%.2g" }} now, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.2g" }}{{else}}no usual value yet{{end}}\n{{ end -}}\n{{ with query (printf `max(vllm_request_prompt_tokens_mean{%%s,%(selector)s}) >= 0` $servers) }}Tokens of a prompt: {{ . | first | value | printf "%%.0f" }} now, {{ with query (printf `quantile_over_time(0.5, (max(vllm_request_prompt_tokens_mean{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ end -}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}Compare with the other servers of the model: one slow server is hardware or routing, all of them are load or software.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-engine?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.k8s_pod_name }}&var-pod={{ urlquery . }}{{end}}{{ with $labels.instance }}&var-instance={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMServerDegraded.md' % $._config,
              summary: '{{ $labels.instance }} serves {{ with $labels.model_name }}{{ . }}{{else}}its model{{end}} badly{{ with $labels.k8s_pod_name }}, pod {{ . }}{{end}}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMModelDown',
            expr: '( max by (k8s_cluster_name, k8s_namespace_name, model_name) ( max_over_time(vllm_arrival_rate_per_second{model_name!="",%(selector)s}[1h]) ) > 0 and on (k8s_cluster_name, k8s_namespace_name) vllm_namespace:servers_known:group or max by (k8s_cluster_name, k8s_namespace_name, model_name) ( last_over_time(ALERTS_FOR_STATE{alertname="VLLMModelDown"}[10m]) ) > time() - 86400 and on (k8s_cluster_name, k8s_namespace_name, model_name) last_over_time(ALERTS{alertname=~"VLLMModelDown",alertstate="firing"}[10m]) and on () (vllm_up{%(selector)s} or otelcol_receiver_vllm_discovered_targets{stage="kept"}) ) unless on (k8s_cluster_name, k8s_namespace_name, model_name) vllm_diagnosis_severity{%(selector)s}' % $._config,
            'for': '2m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'page',
            },
            annotations: {
              description: 'It had servers and requests within the hour before, now it has no servers. Look at its Deployment, the quota and the scheduling.',
              runbook_url: '%(runbookBase)sVLLMModelDown.md' % $._config,
              summary: 'The model{{ with $labels.model_name }} {{ . }}{{end}} has requests but no servers{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMModelWithoutServers',
            expr: '( max by (k8s_cluster_name, k8s_namespace_name, model_name) ( max_over_time(vllm_diagnosis_severity{model_name!="",%(selector)s}[1h]) ) unless on (k8s_cluster_name, k8s_namespace_name, model_name) ALERTS{alertname="VLLMModelDown"} and on (k8s_cluster_name, k8s_namespace_name) vllm_namespace:servers_known:group or max by (k8s_cluster_name, k8s_namespace_name, model_name) ( last_over_time(ALERTS_FOR_STATE{alertname="VLLMModelWithoutServers"}[10m]) ) > time() - 86400 and on (k8s_cluster_name, k8s_namespace_name, model_name) last_over_time(ALERTS{alertname=~"VLLMModelWithoutServers",alertstate="firing"}[10m]) and on () (vllm_up{%(selector)s} or otelcol_receiver_vllm_discovered_targets{stage="kept"}) ) unless on (k8s_cluster_name, k8s_namespace_name, model_name) vllm_diagnosis_severity{%(selector)s}' % $._config,
            'for': '2m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: 'It had servers within the hour before, and no requests. If it was not scaled to 0 on purpose, look at its Deployment, the quota and the scheduling.',
              runbook_url: '%(runbookBase)sVLLMModelWithoutServers.md' % $._config,
              summary: 'The model{{ with $labels.model_name }} {{ . }}{{end}} has no servers any more{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMServerVanished',
            expr: 'min by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) ( min_over_time(vllm_diagnosis_severity{model_name!="",%(selector)s}[1h]) ) < 3 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) vllm_diagnosis_severity{%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) max_over_time(vllm_diagnosis_condition{condition="draining",%(selector)s}[1h]) == 1 and on (k8s_cluster_name, k8s_namespace_name, job) ( count by (k8s_cluster_name, k8s_namespace_name, job) ( max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( vllm_diagnosis_severity{%(selector)s} offset 1h ) ) > ( count by (k8s_cluster_name, k8s_namespace_name, job) ( max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( vllm_diagnosis_severity{%(selector)s} ) ) or count by (k8s_cluster_name, k8s_namespace_name, job) ( max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( vllm_diagnosis_severity{%(selector)s} offset 1h ) ) * 0 ) ) and on (k8s_cluster_name) vllm_up{%(selector)s}' % $._config,
            'for': '10m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              pod: '{{ $labels.k8s_pod_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: 'It served within the last hour, now no collector reports it, and its service ({{ $labels.job }}) has fewer servers than an hour ago.',
              runbook_url: '%(runbookBase)sVLLMServerVanished.md' % $._config,
              summary: '{{ $labels.instance }} is not reported any more{{ with $labels.k8s_pod_name }}, pod {{ . }}{{end}}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
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
              runbook_url: '%(runbookBase)sVLLMTooFewServers.md' % $._config,
              summary: 'Only {{ $value }} of the expected servers are reported',
            },
          },
          {
            alert: 'VLLMDiagnosisMissing',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) ( vllm_num_requests_running{%(selector)s} ) unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance) vllm_diagnosis_severity{%(selector)s}' % $._config,
            'for': '15m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              pod: '{{ $labels.k8s_pod_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: 'Metrics of this server arrive, but the processor does not diagnose it.',
              runbook_url: '%(runbookBase)sVLLMDiagnosisMissing.md' % $._config,
              summary: '{{ $labels.instance }} is scraped, but has no diagnosis{{ with $labels.k8s_pod_name }}, pod {{ . }}{{end}}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
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
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              pod: '{{ $labels.k8s_pod_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance $labels.model_name -}}\n{{ $servers := $of }}{{ $reads := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,k8s_pod_name=%%q,job=%%q,instance=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.k8s_pod_name $labels.job $labels.instance -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMGPUSlowsServer",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\nThe same work takes longer than before, and at the same time a GPU of the server shows the reason.\nCondition: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $of $of) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}not reported now{{end}}. Cause: {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $of) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ if not $i }}{{ $pages = "" }}{{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.cause }}{{else}}{{ range $i, $x := query (printf `count by (outcome) (vllm_scrape_failure{%%s,%(selector)s} == 1)` $reads) | sortByLabel "outcome" }}{{ if $i }}, {{end}}{{ if not $i }}the scrape fails: {{end}}{{ .Labels.outcome }}{{ $hangs = "" }}{{ if eq .Labels.outcome "refused" }} (nothing listens){{ $ended = true }}{{end}}{{else}}{{ or $why "not known" }}{{end}}{{end}}{{ with $pages }}. What to do:{{ . }}{{end}}\nWait for the first token so far: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nTime between tokens: {{ with query (printf `max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s}) >= 0` $servers) }}{{ . | first | value | humanizeDuration }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_inter_token_latency_mean_seconds{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nRequests that wait: {{ with query (printf `max_over_time((sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s})))[1m:1s])` $servers) }}{{ if or (. | first | value) (not (or $hangs $late)) }}{{ . | first | value | printf "%%.0f" }} now{{else}}none that gauges show{{end}}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_num_requests_waiting{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)))[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ with query (printf `sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s})) >= 0` $servers) }}Requests that arrive a second: {{ . | first | value | printf "%%.2g" }} now, {{ with query (printf `quantile_over_time(0.5, (sum(max by (instance, engine) (vllm_arrival_rate_per_second{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.2g" }}{{else}}no usual value yet{{end}}\n{{ end -}}\n{{ with query (printf `max(vllm_request_prompt_tokens_mean{%%s,%(selector)s}) >= 0` $servers) }}Tokens of a prompt: {{ . | first | value | printf "%%.0f" }} now, {{ with query (printf `quantile_over_time(0.5, (max(vllm_request_prompt_tokens_mean{%%s,%(selector)s} unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $since) }}usual {{ . | first | value | printf "%%.0f" }}{{else}}no usual value yet{{end}}\n{{ end -}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}Read the detail: the page of this alert has a step for each.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-engine?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.k8s_pod_name }}&var-pod={{ urlquery . }}{{end}}{{ with $labels.instance }}&var-instance={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMGPUSlowsServer.md' % $._config,
              summary: '{{ $labels.instance }} is slow because of a GPU ({{ $labels.detail }}){{ with $labels.k8s_pod_name }}, pod {{ . }}{{end}}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMGPUMemoryErrors',
            expr: 'sum by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, hw_id, hw_name) ( increase(vllm_accelerator_row_remap_rows_total{error_type="uncorrected",%(selector)s}[1h]) ) > 0 or sum by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, hw_id, hw_name) ( increase(hw_errors_total{error_type="uncorrected",%(selector)s}[1h]) ) > 0 or max by (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, hw_id, hw_name) ( vllm_accelerator_row_remap_failed{%(selector)s} ) > 0' % $._config,
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              pod: '{{ $labels.k8s_pod_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: 'An error in the memory of this GPU could not be corrected within the last hour, or a row could not be replaced.',
              runbook_url: '%(runbookBase)sVLLMGPUMemoryErrors.md' % $._config,
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
              description: 'The diagnosis can neither name nor exclude a GPU as the cause.',
              runbook_url: '%(runbookBase)sVLLMGPUExporterSilent.md' % $._config,
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
            expr: 'vllm_slo:error_ratio_lower:rate1h > clamp_max(%(burnFast)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and ( vllm_slo:error_ratio_lower:rate5m > clamp_max(%(burnFast)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:valid:rate5m * 300 >= %(eventsFast)g unless on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_slo:requests:rate5m * 300 < %(eventsFast)g or vllm_slo:error_ratio_lower:rate5m > 0.5 * clamp_max(%(burnFast)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and on (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ALERTS{alertname=~"VLLMBudgetBurnFast",alertstate="firing"} ) unless last_over_time(vllm_slo:error_ratio_lower:rate2m[5m]) < 0.5 * clamp_max(%(burnFast)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g)' % $._config,
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'page',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q,objective=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name $labels.objective -}}\n{{ $servers := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMBudgetBurnFast",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\n{{ $value | humanizePercentage }} of the events of the last hour certainly missed the objective.\n{{ range query (printf `sort_desc(topk(5, max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2))` $servers) -}}\n{{ $s := printf `%%s,instance=%%q` $servers .Labels.instance -}}\n{{ $why = "" }}Server {{ .Labels.instance }}{{ with .Labels.k8s_pod_name }} ({{ . }}){{end}}: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $s $s) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}condition not reported now{{end}}, cause {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $s) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{else}}{{ or $why "not known" }}{{end}}{{ range query (printf `max(vllm_diagnosis_user_share_ratio{%%s,%(selector)s}) > 0` $s) }}; the router still sends {{ .Value | humanizePercentage }} of the users to it{{end}}\n{{else}}No server with these labels harms its users now.\n{{ end -}}\n{{ range query (printf `count(max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2) - 5 > 0` $servers) }}And {{ .Value }} more\n{{ end -}}\nMissed the objective in 5 minutes: {{ with query (printf `max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0` $of) }}{{ . | first | value | humanizePercentage }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0)[1d:5m] @ %%.3f)` $of $since) }}usual {{ . | first | value | humanizePercentage }}{{else}}no usual value yet{{end}}\nWait for the first token so far, worst of these servers: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}See how fast the budget is used now, and whether it gets worse.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-objectives?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.objective }}&var-objective={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMBudgetBurnFast.md' % $._config,
              summary: 'The objective {{ $labels.objective }} of {{ with $labels.model_name }}{{ . }}{{else}}all models{{end}} is missed so often that an hour uses 2 %% of the month\'s error budget{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}' % $._config,
            },
          },
          {
            alert: 'VLLMBudgetBurnMedium',
            expr: 'vllm_slo:error_ratio_lower:rate6h > clamp_max(%(burnMedium)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and ( vllm_slo:error_ratio_lower:rate30m > clamp_max(%(burnMedium)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:valid:rate30m * 1800 >= %(eventsMedium)g unless on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_slo:requests:rate30m * 1800 < %(eventsMedium)g or vllm_slo:error_ratio_lower:rate30m > 0.5 * clamp_max(%(burnMedium)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and on (k8s_cluster_name, k8s_namespace_name, job, model_name, objective) ALERTS{alertname=~"VLLMBudgetBurnMedium",alertstate="firing"} ) unless last_over_time(vllm_slo:error_ratio_lower:rate2m[5m]) < 0.5 * clamp_max(%(burnMedium)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g)' % $._config,
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'page',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q,objective=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name $labels.objective -}}\n{{ $servers := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMBudgetBurnMedium",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\n{{ $value | humanizePercentage }} of the events of the last six hours certainly missed the objective.\n{{ range query (printf `sort_desc(topk(5, max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2))` $servers) -}}\n{{ $s := printf `%%s,instance=%%q` $servers .Labels.instance -}}\n{{ $why = "" }}Server {{ .Labels.instance }}{{ with .Labels.k8s_pod_name }} ({{ . }}){{end}}: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $s $s) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}condition not reported now{{end}}, cause {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $s) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{else}}{{ or $why "not known" }}{{end}}{{ range query (printf `max(vllm_diagnosis_user_share_ratio{%%s,%(selector)s}) > 0` $s) }}; the router still sends {{ .Value | humanizePercentage }} of the users to it{{end}}\n{{else}}No server with these labels harms its users now.\n{{ end -}}\n{{ range query (printf `count(max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2) - 5 > 0` $servers) }}And {{ .Value }} more\n{{ end -}}\nMissed the objective in 5 minutes: {{ with query (printf `max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0` $of) }}{{ . | first | value | humanizePercentage }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0)[1d:5m] @ %%.3f)` $of $since) }}usual {{ . | first | value | humanizePercentage }}{{else}}no usual value yet{{end}}\nWait for the first token so far, worst of these servers: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}See how fast the budget is used now, and whether it gets worse.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-objectives?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.objective }}&var-objective={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMBudgetBurnMedium.md' % $._config,
              summary: 'The objective {{ $labels.objective }} of {{ with $labels.model_name }}{{ . }}{{else}}all models{{end}} is missed so often that six hours use 5 %% of the month\'s error budget{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}' % $._config,
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
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q,objective=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name $labels.objective -}}\n{{ $servers := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMBudgetBurnSlow",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\n{{ $value | humanizePercentage }} of the events of the last day certainly missed the objective, and the last two hours are as bad.\n{{ range query (printf `sort_desc(topk(5, max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2))` $servers) -}}\n{{ $s := printf `%%s,instance=%%q` $servers .Labels.instance -}}\n{{ $why = "" }}Server {{ .Labels.instance }}{{ with .Labels.k8s_pod_name }} ({{ . }}){{end}}: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $s $s) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}condition not reported now{{end}}, cause {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $s) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{else}}{{ or $why "not known" }}{{end}}{{ range query (printf `max(vllm_diagnosis_user_share_ratio{%%s,%(selector)s}) > 0` $s) }}; the router still sends {{ .Value | humanizePercentage }} of the users to it{{end}}\n{{else}}No server with these labels harms its users now.\n{{ end -}}\n{{ range query (printf `count(max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2) - 5 > 0` $servers) }}And {{ .Value }} more\n{{ end -}}\nMissed the objective in 5 minutes: {{ with query (printf `max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0` $of) }}{{ . | first | value | humanizePercentage }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0)[1d:5m] @ %%.3f)` $of $since) }}usual {{ . | first | value | humanizePercentage }}{{else}}no usual value yet{{end}}\nWait for the first token so far, worst of these servers: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}See how fast the budget is used now, and whether it gets worse.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-objectives?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.objective }}&var-objective={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMBudgetBurnSlow.md' % $._config,
              summary: 'The objective {{ $labels.objective }} of {{ with $labels.model_name }}{{ . }}{{else}}all models{{end}} is missed so often that a day uses 10 %% of the month\'s error budget{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}' % $._config,
            },
          },
          {
            alert: 'VLLMBudgetBurnLeak',
            expr: 'vllm_slo:error_ratio_lower:rate3d > clamp_max(%(burnLeak)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:error_ratio_lower:rate6h > clamp_max(%(burnLeak)g * (1 - vllm_slo:target:last1h), %(errorRatioAlways)g) and vllm_slo:valid:rate6h * 21600 >= %(eventsLeak)g unless on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_slo:requests:rate6h * 21600 < %(eventsLeak)g and vllm_slo:coverage:3d >= %(coverage)g' % $._config,
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q,objective=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name $labels.objective -}}\n{{ $servers := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMBudgetBurnLeak",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\n{{ $value | humanizePercentage }} of the events of the last three days certainly missed the objective, and the last six hours are as bad.\n{{ range query (printf `sort_desc(topk(5, max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2))` $servers) -}}\n{{ $s := printf `%%s,instance=%%q` $servers .Labels.instance -}}\n{{ $why = "" }}Server {{ .Labels.instance }}{{ with .Labels.k8s_pod_name }} ({{ . }}){{end}}: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $s $s) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}condition not reported now{{end}}, cause {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $s) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{else}}{{ or $why "not known" }}{{end}}{{ range query (printf `max(vllm_diagnosis_user_share_ratio{%%s,%(selector)s}) > 0` $s) }}; the router still sends {{ .Value | humanizePercentage }} of the users to it{{end}}\n{{else}}No server with these labels harms its users now.\n{{ end -}}\n{{ range query (printf `count(max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2) - 5 > 0` $servers) }}And {{ .Value }} more\n{{ end -}}\nMissed the objective in 5 minutes: {{ with query (printf `max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0` $of) }}{{ . | first | value | humanizePercentage }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0)[1d:5m] @ %%.3f)` $of $since) }}usual {{ . | first | value | humanizePercentage }}{{else}}no usual value yet{{end}}\nWait for the first token so far, worst of these servers: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}See how fast the budget is used now, and whether it gets worse.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-objectives?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.objective }}&var-objective={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMBudgetBurnLeak.md' % $._config,
              summary: 'The objective {{ $labels.objective }} of {{ with $labels.model_name }}{{ . }}{{else}}all models{{end}} will use up its error budget within the month{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMBudgetExhausted',
            expr: 'vllm_slo:budget_remaining_upper:30d <= 0 and vllm_slo:coverage:30d >= %(coverage)g' % $._config,
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: '{{ $runbooks := "%(runbookBase)s" }}{{ $grafana := "%(grafanaURL)s" -}}\n{{ $of := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q,objective=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name $labels.objective -}}\n{{ $servers := printf `k8s_cluster_name=%%q,k8s_namespace_name=%%q,job=%%q,model_name=%%q` $labels.k8s_cluster_name $labels.k8s_namespace_name $labels.job $labels.model_name -}}\n{{ $why := "" }}{{ $pages := "" }}{{ $hangs := "" }}{{ $late := false }}{{ $ended := false -}}\n{{ $since := 0.0 }}{{ range query (printf `max(last_over_time(ALERTS_FOR_STATE{alertname="VLLMBudgetExhausted",%%s}[6m])) or vector(time())` $of) }}{{ $since = .Value }}{{ end -}}\nMore events of the last 30 days certainly missed the objective than the target allows.\n{{ range query (printf `sort_desc(topk(5, max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2))` $servers) -}}\n{{ $s := printf `%%s,instance=%%q` $servers .Labels.instance -}}\n{{ $why = "" }}Server {{ .Labels.instance }}{{ with .Labels.k8s_pod_name }} ({{ . }}){{end}}: {{ range $i, $x := query (printf `count by (condition) (vllm_diagnosis_condition{%%s,%(selector)s} == 1 and on (engine) vllm_diagnosis_severity{%%s,%(selector)s} >= 2)` $s $s) | sortByLabel "condition" }}{{ if $i }}, {{end}}{{ .Labels.condition }}{{ $pages = printf "%%s %%s%%s.md" $pages $runbooks .Labels.condition }}{{ if match "^(stalled|unreachable|failing)$" .Labels.condition }}{{ $why = "not visible from outside" }}{{end}}{{ if eq .Labels.condition "stalled" }}{{ $hangs = ", as no request makes progress" }}{{end}}{{else}}condition not reported now{{end}}, cause {{ range $i, $x := query (printf `count by (cause, detail) (vllm_diagnosis_cause{role="primary",%%s,%(selector)s} == 1)` $s) | sortByLabel "cause" }}{{ if $i }}, {{end}}{{ .Labels.cause }}{{ with .Labels.detail }} ({{ . }}){{end}}{{else}}{{ or $why "not known" }}{{end}}{{ range query (printf `max(vllm_diagnosis_user_share_ratio{%%s,%(selector)s}) > 0` $s) }}; the router still sends {{ .Value | humanizePercentage }} of the users to it{{end}}\n{{else}}No server with these labels harms its users now.\n{{ end -}}\n{{ range query (printf `count(max by (k8s_pod_name, instance) (vllm_diagnosis_severity{%%s,%(selector)s}) >= 2) - 5 > 0` $servers) }}And {{ .Value }} more\n{{ end -}}\nMissed the objective in 5 minutes: {{ with query (printf `max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0` $of) }}{{ . | first | value | humanizePercentage }} now{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_slo:error_ratio_lower:rate5m{%%s}) >= 0)[1d:5m] @ %%.3f)` $of $since) }}usual {{ . | first | value | humanizePercentage }}{{else}}no usual value yet{{end}}\nWait for the first token so far, worst of these servers: {{ with query (printf `max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2) >= 0` $servers $servers) }}{{ . | first | value | humanizeDuration }} now{{ $late = gt (. | first | value) 5.0 }}{{else}}not measured{{ or $hangs " now" }}{{end}}, {{ with query (printf `quantile_over_time(0.5, (max(vllm_diagnosis_first_token_wait_seconds{%%s,%(selector)s} and on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} @ end() >= 2 unless on (k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, model_name) vllm_diagnosis_severity{%%s,%(selector)s} >= 2) >= 0)[1d:5m] @ %%.3f)` $servers $servers $servers $since) }}usual {{ . | first | value | humanizeDuration }}{{else}}no usual value yet{{end}}\nReported since {{ $since | humanizeTimestamp }}. Usual is the median of up to 24 hours before, without harm.\nNext: {{ if $ended }}Read the end of the server\'s log and of the process before, and check whether its process or its pod restarted.{{ else if $hangs }}Check the state of the server\'s processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that.{{else}}See how much is left, and when it was used. The panel shows the lower bound.{{end}}\n{{- if $grafana }}\nBoard: {{ $grafana }}/d/vllm-objectives?from=now-6h&to=now{{ with $labels.k8s_cluster_name }}&var-cluster={{ urlquery . }}{{end}}{{ with $labels.k8s_namespace_name }}&var-namespace={{ urlquery . }}{{end}}{{ with $labels.model_name }}&var-model={{ urlquery . }}{{end}}{{ with $labels.job }}&var-job={{ urlquery . }}{{end}}{{ with $labels.objective }}&var-objective={{ urlquery . }}{{end}}{{end}}' % $._config,
              runbook_url: '%(runbookBase)sVLLMBudgetExhausted.md' % $._config,
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
            expr: 'vllm_gateway:error_ratio:rate5m > %(gatewayErrorRatio)g and on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_gateway:requests:rate5m * 300 >= %(gatewayRequests)g unless ( vllm_gateway:error_ratio:rate2m < 0.5 * %(gatewayErrorRatio)g and vllm_gateway:requests:rate2m * 120 >= 4 * %(gatewayRequests)g and on (k8s_cluster_name, k8s_namespace_name, job, model_name) ALERTS{alertname=~"VLLMGatewayErrors",alertstate="firing"} )' % $._config,
            'for': '5m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'page',
            },
            annotations: {
              description: '{{ $value | humanizePercentage }} of the requests that reached the gateway failed in the last five minutes.',
              runbook_url: '%(runbookBase)sVLLMGatewayErrors.md' % $._config,
              summary: '{{ $value | humanizePercentage }} of the requests for {{ with $labels.model_name }}{{ . }}{{else}}an unknown model{{end}} fail at the gateway{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMGatewayNoReadyEndpoints',
            expr: 'max by (k8s_cluster_name, k8s_namespace_name, job, pool) ( inference_gateway_pool_endpoint_ready{%(selector)s} ) == 0' % $._config,
            'for': '1m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'page',
            },
            annotations: {
              description: 'The endpoint picker knows no server whose metrics are fresh.',
              runbook_url: '%(runbookBase)sVLLMGatewayNoReadyEndpoints.md' % $._config,
              summary: 'The gateway has no ready endpoint in the pool {{ $labels.pool }}{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}',
            },
          },
          {
            alert: 'VLLMGatewayLatencyHigh',
            expr: '( histogram_quantile( 0.99, sum by (k8s_cluster_name, k8s_namespace_name, job, model_name, le) ( rate(inference_gateway_epp_request_duration_seconds_bucket{%(selector)s}[5m]) ) ) or max by (k8s_cluster_name, k8s_namespace_name, job, model_name) ( inference_gateway_request_duration_quantile_seconds{model_name!="",quantile="0.99",%(selector)s} ) ) > %(gatewayLatencySeconds)g and on (k8s_cluster_name, k8s_namespace_name, job, model_name) vllm_gateway:requests:rate5m * 300 >= %(gatewayRequests)g' % $._config,
            'for': '10m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: 'The p99 of the time from the arrival at the gateway to the end of the response is above the threshold.',
              runbook_url: '%(runbookBase)sVLLMGatewayLatencyHigh.md' % $._config,
              summary: '1 %% of the requests for {{ with $labels.model_name }}{{ . }}{{else}}an unknown model{{end}} take longer than {{ $value | humanizeDuration }} at the gateway{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{end}}{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{end}}' % $._config,
            },
          },
          {
            alert: 'VLLMLoRAAdapterNotLoaded',
            expr: 'count by (k8s_cluster_name, k8s_namespace_name, job, adapter_name) ( max by (k8s_cluster_name, k8s_namespace_name, job, instance, adapter_name) ( inference_gateway_lora_adapter_status{%(selector)s} ) == 1 ) < on (k8s_cluster_name, k8s_namespace_name, job) group_left () count by (k8s_cluster_name, k8s_namespace_name, job) ( count by (k8s_cluster_name, k8s_namespace_name, job, instance) ( inference_gateway_lora_adapter_status{%(selector)s} ) )' % $._config,
            'for': '15m',
            labels: {
              namespace: '{{ $labels.k8s_namespace_name }}',
              severity: 'ticket',
            },
            annotations: {
              description: 'The syncers of some servers have this adapter loaded, those of others have not.',
              runbook_url: '%(runbookBase)sVLLMLoRAAdapterNotLoaded.md' % $._config,
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
            expr: '( absent(vllm_up{%(selector)s}) or on () ( count by (k8s_cluster_name) (last_over_time(vllm_up{k8s_cluster_name!="",%(selector)s}[1d])) unless on (k8s_cluster_name) vllm_up{%(selector)s} ) ) unless on (k8s_cluster_name) ( sum by (k8s_cluster_name) ( otelcol_receiver_vllm_discovered_targets{k8s_cluster_name!="",stage="kept"} ) == 0 ) unless on () ( sum(otelcol_receiver_vllm_discovered_targets{stage="kept"}) == 0 unless on () count( count by (k8s_cluster_name) (last_over_time(vllm_up{k8s_cluster_name!="",%(selector)s}[1d])) ) > 1 )' % $._config,
            'for': '10m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'No metrics of vLLM servers arrive, so no other alert of vLLM can fire.',
              runbook_url: '%(runbookBase)sVLLMCollectorSilent.md' % $._config,
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
              runbook_url: '%(runbookBase)sVLLMCollectorQueueFilling.md' % $._config,
              summary: 'The queue of the exporter {{ $labels.exporter }} of {{ $labels.instance }} is {{ $value | humanizePercentage }} full',
            },
          },
          {
            alert: 'VLLMCollectorSendFailing',
            expr: 'sum by (job, instance, exporter) (rate(otelcol_exporter_send_failed_metric_points[5m])) > 0 or sum by (job, instance, exporter) (rate(otelcol_exporter_enqueue_failed_metric_points[5m])) > 0',
            'for': '5m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: 'Points were dropped: the backend refused them, or the queue was full.',
              runbook_url: '%(runbookBase)sVLLMCollectorSendFailing.md' % $._config,
              summary: 'The exporter {{ $labels.exporter }} of {{ $labels.instance }} loses points',
            },
          },
        ],
      },
    ],
  },
}

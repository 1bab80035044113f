// Written by cmd/contentgen from internal/content. Do not edit: run "make generate".
{
  _config+:: {
    // Matchers for each series except the collector's own, for example 'k8s_cluster_name="prod"'. Servers, pools
    // and the gateway must all have these labels: they have different jobs.
    selector: '',
    runbookBase: 'https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/',
    // The number of servers below which VLLMTooFewServers fires.
    serversExpected: 1,
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
    ],
  },
  prometheusAlerts+:: {
    groups+: [
      {
        name: 'vllm-raw',
        rules: [
          {
            alert: 'VLLMRawServerDown',
            expr: 'up{%(selector)s} == 0 and on (job, instance) last_over_time(vllm:num_requests_running{%(selector)s}[1d])' % $._config,
            'for': '2m',
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'Prometheus cannot scrape this server, which reported requests within the last day.',
              runbook_url: $._config.runbookBase + 'VLLMRawServerDown.md',
              summary: '{{ $labels.instance }} cannot be scraped',
            },
          },
          {
            alert: 'VLLMRawServerStalled',
            expr: 'sum by (job, instance, engine) (min_over_time(vllm:num_requests_running{%(selector)s}[5m])) > 0 and on (job, instance, engine) sum by (job, instance, engine) (increase(vllm:generation_tokens_total{%(selector)s}[5m])) == 0 and on (job, instance, engine) sum by (job, instance, engine) (increase(vllm:prompt_tokens_total{%(selector)s}[5m])) == 0' % $._config,
            'for': '5m',
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'Requests run, and no token was computed in five minutes.',
              runbook_url: $._config.runbookBase + 'VLLMRawServerStalled.md',
              summary: '{{ $labels.instance }}{{ with $labels.engine }}, engine {{ . }},{{end}} has running requests but makes no tokens',
            },
          },
          {
            alert: 'VLLMRawFirstTokenLateFast',
            expr: '1 - sum by (job, model_name) ( rate(vllm:time_to_first_token_seconds_bucket{le="2.5",%(selector)s}[1h]) ) / (sum by (job, model_name) (rate(vllm:time_to_first_token_seconds_count{%(selector)s}[1h])) > 0) > scalar(clamp_max(vector(%(burnFast)g * (1 - %(rawFirstTokenTarget)g)), %(errorRatioAlways)g)) and 1 - sum by (job, model_name) ( rate(vllm:time_to_first_token_seconds_bucket{le="2.5",%(selector)s}[5m]) ) / (sum by (job, model_name) (rate(vllm:time_to_first_token_seconds_count{%(selector)s}[5m])) > 0) > scalar(clamp_max(vector(%(burnFast)g * (1 - %(rawFirstTokenTarget)g)), %(errorRatioAlways)g)) and sum by (job, model_name) (rate(vllm:time_to_first_token_seconds_count{%(selector)s}[5m])) * 300 >= %(eventsFast)g' % $._config,
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'In the last hour and in the last five minutes, far more requests than allowed waited longer than 2.5 s for their first token.',
              runbook_url: $._config.runbookBase + 'VLLMRawFirstTokenLateFast.md',
              summary: '{{ $value | humanizePercentage }} of the requests for {{ with $labels.model_name }}{{ . }}{{else}}an unknown model{{end}} wait longer than 2.5 s for their first token',
            },
          },
          {
            alert: 'VLLMRawFirstTokenLateMedium',
            expr: '1 - sum by (job, model_name) ( rate(vllm:time_to_first_token_seconds_bucket{le="2.5",%(selector)s}[6h]) ) / (sum by (job, model_name) (rate(vllm:time_to_first_token_seconds_count{%(selector)s}[6h])) > 0) > scalar(clamp_max(vector(%(burnMedium)g * (1 - %(rawFirstTokenTarget)g)), %(errorRatioAlways)g)) and 1 - sum by (job, model_name) ( rate(vllm:time_to_first_token_seconds_bucket{le="2.5",%(selector)s}[30m]) ) / (sum by (job, model_name) (rate(vllm:time_to_first_token_seconds_count{%(selector)s}[30m])) > 0) > scalar(clamp_max(vector(%(burnMedium)g * (1 - %(rawFirstTokenTarget)g)), %(errorRatioAlways)g)) and sum by (job, model_name) (rate(vllm:time_to_first_token_seconds_count{%(selector)s}[30m])) * 1800 >= %(eventsMedium)g' % $._config,
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: 'In the last six hours and in the last 30 minutes, far more requests than allowed waited longer than 2.5 s for their first token.',
              runbook_url: $._config.runbookBase + 'VLLMRawFirstTokenLateMedium.md',
              summary: '{{ $value | humanizePercentage }} of the requests for {{ with $labels.model_name }}{{ . }}{{else}}an unknown model{{end}} wait longer than 2.5 s for their first token',
            },
          },
          {
            alert: 'VLLMRawQueueTimeHigh',
            expr: 'histogram_quantile( 0.95, sum by (job, model_name, le) (rate(vllm:request_queue_time_seconds_bucket{%(selector)s}[5m])) ) > %(rawQueueSeconds)g and on (job, model_name) sum by (job, model_name) (rate(vllm:request_queue_time_seconds_count{%(selector)s}[5m])) * 300 >= %(eventsFast)g' % $._config,
            'for': '10m',
            keep_firing_for: '10m',
            labels: {
              severity: 'ticket',
            },
            annotations: {
              description: '5 % of the requests wait longer in vLLM\'s queue than the threshold.',
              runbook_url: $._config.runbookBase + 'VLLMRawQueueTimeHigh.md',
              summary: '5 % of the requests for {{ with $labels.model_name }}{{ . }}{{else}}an unknown model{{end}} wait longer than {{ $value | humanizeDuration }} in the queue',
            },
          },
          {
            alert: 'VLLMRawRequestsFailing',
            expr: 'sum by (job, model_name) ( rate(vllm:request_success_total{finished_reason="error",%(selector)s}[5m]) ) / (sum by (job, model_name) (rate(vllm:request_success_total{%(selector)s}[5m])) > 0) > %(gatewayErrorRatio)g and on (job, model_name) sum by (job, model_name) (rate(vllm:request_success_total{%(selector)s}[5m])) * 300 >= %(eventsFast)g' % $._config,
            'for': '5m',
            keep_firing_for: '5m',
            labels: {
              severity: 'page',
            },
            annotations: {
              description: '{{ $value | humanizePercentage }} of the requests that ended in the last five minutes did so with an error of the engine.',
              runbook_url: $._config.runbookBase + 'VLLMRawRequestsFailing.md',
              summary: '{{ $value | humanizePercentage }} of the requests for {{ with $labels.model_name }}{{ . }}{{else}}an unknown model{{end}} end with an error',
            },
          },
        ],
      },
    ],
  },
}

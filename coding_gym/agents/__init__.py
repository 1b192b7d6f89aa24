"""Agents, which play the episodes of runs.

- ``player``: the protocol of agents, and the running episode that an agent plays.
- ``built_in``: the agents by name. ``scripted``: agents without a model, such as ``gold``;
  ``template_repair``, ``predictions``; ``chat``: a model on a server; ``hf``: a local model.
- ``harness``: command-line agents in the sandbox, with presets in ``presets/``. ``capture``: the
  endpoint for their requests; ``harness_api``: the APIs of the endpoint.
- ``model_client``, ``model_reply``, ``model_errors``: models on servers. ``local_chat``: models
  that sample token ids. ``past_chats``: the earlier chat that a request continues.
"""
